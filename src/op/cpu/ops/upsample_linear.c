/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * upsample_linear of a plain x, with a table of the taps of each dimension.
 * For a line of y, the 1, 2 or 4 neighbouring lines of x are first mixed with
 * their weights, a piece at a time, and the piece is then stretched. Backward
 * does the transposed steps in reverse order. Lines that become twice as long
 * are stretched by vector instructions (linear_double). The images [n, c] are
 * divided among threads.
 */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "simd/team.h"
#include "simd/vector.h"
#include "simd/zip.h"

#define PIECE 1024
#define DOUBLE_MIN (SIMD_ZIP + 2) /* shortest line for linear_double */
#define LINES_MAX 4 /* most lines of x that contribute to one line of y */

typedef struct linear_tap {
    int64_t first, second;
    float weight; /* of [second]; [first] has 1 - weight */
} linear_tap_t;

typedef struct cpu_upsample_linear {
    cpu_combine_t combine; /* first member: combine.c uses the op's state as a
                              cpu_combine_t */
    linear_tap_t *taps[OP_SPACE_MAX];
} cpu_upsample_linear_t;

typedef struct linear_work {
    int space;                /* dimensions of an image */
    const int64_t *in, *out;  /* sizes of an image of x and of y */
    int64_t x_elems, y_elems; /* of an image */
    int64_t y_lines, width, y_width;
    linear_tap_t *const *taps;
    const float *from;
    float *to;
} linear_work_t;

static err_code_t linear_tables(op_t *op, err_t *err)
{
    cpu_upsample_linear_t *state = op->state;
    const op_desc_t *in = &op->config.in;
    err_code_t rc = ERR_OK;

    for (int d = 0; d < in->ndim - 2 && rc == ERR_OK; d++) {
        const int64_t count = op->out.dims[2 + d];

        rc = mem_new(linear_tap_t, (size_t)count, "a table of neighbours",
                     &state->taps[d], err);
        for (int64_t i = 0; i < count && rc == ERR_OK; i++) {
            op_tap_t tap =
                op_upsample_tap(i, op->config.view.dims[d], in->dims[2 + d]);

            state->taps[d][i] =
                (linear_tap_t){tap.first, tap.second, (float)tap.weight};
        }
    }
    return rc;
}

static err_code_t cpu_upsample_linear_open(op_t *op, err_t *err)
{
    err_code_t rc =
        cpu_combine_open_in(op, sizeof(cpu_upsample_linear_t), true, err);

    op->reads_x = false;
    return rc == ERR_OK ? linear_tables(op, err) : rc;
}

static void cpu_upsample_linear_close(op_t *op)
{
    cpu_upsample_linear_t *state = op->state;

    for (int d = 0; state != NULL && d < OP_SPACE_MAX; d++)
        mem_free(state->taps[d]);
    cpu_combine_close(op);
}

/* The lines of x that contribute to one line of y, and their weights. */
typedef struct linear_lines {
    int count;
    int64_t line[LINES_MAX];
    float weight[LINES_MAX];
} linear_lines_t;

/* Set [lines] to the lines of x that neighbour line [at] of y. */
static void linear_neighbours(const linear_work_t *work, int64_t at,
                              linear_lines_t *lines)
{
    int64_t step = 1;
    int count = 1;

    lines->line[0] = 0;
    lines->weight[0] = 1;
    for (int d = work->space - 2; d >= 0; d--) {
        /* The outermost dimension needs no division. */
        const linear_tap_t *tap =
            &work->taps[d][d == 0 ? at : at % work->out[d]];

        for (int i = 0; i < count; i++) {
            lines->line[count + i] = lines->line[i] + tap->second * step;
            lines->weight[count + i] = lines->weight[i] * tap->weight;
            lines->line[i] += tap->first * step;
            lines->weight[i] *= 1 - tap->weight;
        }
        count *= 2;
        at = d == 0 ? 0 : at / work->out[d];
        step *= work->in[d];
    }
    lines->count = count;
}

/* Number of columns of x that the piece which begins at column [a] reads: up
 * to PIECE, and one more neighbour. */
static int64_t linear_piece(const linear_work_t *work, int64_t a)
{
    return work->width - a < PIECE + 1 ? work->width - a : PIECE + 1;
}

/* to = sum of the lines of [image], times their weights, for the piece that
 * begins at column [a]. */
SIMD_CLONES
static void linear_mix(const linear_work_t *work, const linear_lines_t *lines,
                       const float *image, int64_t a, float *restrict to)
{
    const int64_t width = work->width, count = linear_piece(work, a);
    const float *above = image + lines->line[0] * width + a;

    if (lines->count == 1) {
        memcpy(to, above, (size_t)count * sizeof *to);
    } else {
        const float *below = image + lines->line[1] * width + a;
        const float first = lines->weight[0], second = lines->weight[1];

        for (int64_t i = 0; i < count; i++)
            to[i] = first * above[i] + second * below[i];
    }
    for (int k = 2; k < lines->count; k++) {
        const float *x = image + lines->line[k] * width + a;
        const float weight = lines->weight[k];

        for (int64_t i = 0; i < count; i++)
            to[i] += weight * x[i];
    }
}

/* Backward of linear_mix: add [from], times the weights, to the lines. */
SIMD_CLONES
static void linear_unmix(const linear_work_t *work, const linear_lines_t *lines,
                         const float *from, int64_t a, float *image)
{
    const int64_t width = work->width, count = linear_piece(work, a);

    for (int k = 0; k < lines->count; k++) {
        float *restrict x = image + lines->line[k] * width + a;
        const float weight = lines->weight[k];

        for (int64_t i = 0; i < count; i++)
            x[i] += weight * from[i];
    }
}

/* ---- lines twice as long ------------------------------------------------- */

/* Can linear_double be used? In a line that becomes twice as long, element 2 i
 * of y is between elements i - 1 and i of x, and element 2 i + 1 between i and
 * i + 1. Only the elements at the ends have one neighbour. */
static bool linear_doubles(const linear_work_t *work)
{
    return work->y_width == 2 * work->width && work->width >= DOUBLE_MIN &&
           work->width <= PIECE;
}

static float linear_at(const linear_tap_t *tap, const float *mixed)
{
    return mixed[tap->first] * (1 - tap->weight) +
           mixed[tap->second] * tap->weight;
}

SIMD_CLONES
static void linear_double(const float *mixed, int64_t width,
                          const linear_tap_t *taps, float *y)
{
    const float a = taps[2].weight, b = taps[3].weight;

    for (int64_t i = 1; i < width - 1; i = simd_zip_next(i, width - 1)) {
        float even[SIMD_ZIP], odd[SIMD_ZIP];

        for (int j = 0; j < SIMD_ZIP; j++)
            even[j] = mixed[i - 1 + j] * (1 - a) + mixed[i + j] * a;
        for (int j = 0; j < SIMD_ZIP; j++)
            odd[j] = mixed[i + j] * (1 - b) + mixed[i + 1 + j] * b;
        simd_zip(even, odd, y + 2 * i);
    }
    for (int64_t j = 0; j < 2; j++) {
        y[j] = linear_at(&taps[j], mixed);
        y[2 * width - 2 + j] = linear_at(&taps[2 * width - 2 + j], mixed);
    }
}

/* Backward of linear_double; writes mixed[0 .. width). */
SIMD_CLONES
static void linear_halve(const float *dy, int64_t width,
                         const linear_tap_t *taps, float *mixed)
{
    const float a = taps[2].weight, b = taps[3].weight;

    for (int64_t i = 1; i < width - 1; i = simd_zip_next(i, width - 1)) {
        float before[SIMD_ZIP], even[SIMD_ZIP], odd[SIMD_ZIP], after[SIMD_ZIP];

        simd_unzip(dy + 2 * i - 1, before);
        simd_unzip(dy + 2 * i, even);
        simd_unzip(dy + 2 * i + 1, odd);
        simd_unzip(dy + 2 * i + 2, after);
        for (int j = 0; j < SIMD_ZIP; j++)
            mixed[i + j] = before[j] * b + even[j] * a + odd[j] * (1 - b) +
                           after[j] * (1 - a);
    }
    mixed[0] = dy[0] + dy[1] * (1 - b) + dy[2] * (1 - a);
    mixed[width - 1] =
        dy[2 * width - 3] * b + dy[2 * width - 2] * a + dy[2 * width - 1];
}

/* ---- lines --------------------------------------------------------------- */

static void linear_line_forward(const linear_work_t *work, const float *image,
                                int64_t line, float *y)
{
    const linear_tap_t *taps = work->taps[work->space - 1];
    const bool doubles = linear_doubles(work);
    linear_lines_t lines;
    float mixed[PIECE + 1];
    int64_t j = 0;

    linear_neighbours(work, line, &lines);
    for (int64_t a = 0; a < work->width; a += PIECE) {
        linear_mix(work, &lines, image, a, mixed);
        if (doubles)
            linear_double(mixed, work->width, taps, y);
        for (; !doubles && j < work->y_width && taps[j].first < a + PIECE; j++)
            y[j] = mixed[taps[j].first - a] * (1 - taps[j].weight) +
                   mixed[taps[j].second - a] * taps[j].weight;
    }
}

static void linear_line_backward(const linear_work_t *work, const float *dy,
                                 int64_t line, float *image)
{
    const linear_tap_t *taps = work->taps[work->space - 1];
    const bool doubles = linear_doubles(work);
    linear_lines_t lines;
    float mixed[PIECE + 1];
    int64_t j = 0;

    linear_neighbours(work, line, &lines);
    for (int64_t a = 0; a < work->width; a += PIECE) {
        if (doubles)
            linear_halve(dy, work->width, taps, mixed);
        else
            memset(mixed, 0, (size_t)linear_piece(work, a) * sizeof *mixed);
        for (; !doubles && j < work->y_width && taps[j].first < a + PIECE;
             j++) {
            mixed[taps[j].first - a] += dy[j] * (1 - taps[j].weight);
            mixed[taps[j].second - a] += dy[j] * taps[j].weight;
        }
        linear_unmix(work, &lines, mixed, a, image);
    }
}

static void linear_forward_body(void *context, int64_t first, int64_t last)
{
    const linear_work_t *work = context;

    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++)
            linear_line_forward(work, work->from + n * work->x_elems, line,
                                work->to + n * work->y_elems +
                                    line * work->y_width);
}

static void linear_backward_body(void *context, int64_t first, int64_t last)
{
    const linear_work_t *work = context;

    memset(work->to + first * work->x_elems, 0,
           (size_t)((last - first) * work->x_elems) * sizeof(float));
    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++)
            linear_line_backward(
                work, work->from + n * work->y_elems + line * work->y_width,
                line, work->to + n * work->x_elems);
}

static void linear_run(const op_t *op, simd_team_body_t *body,
                       const float *from, float *to)
{
    const cpu_upsample_linear_t *state = op->state;
    const op_desc_t *in = &op->config.in;
    linear_work_t work = {.space = in->ndim - 2,
                          .in = in->dims + 2,
                          .out = op->out.dims + 2,
                          .x_elems = op_desc_space(in),
                          .y_elems = op_desc_space(&op->out),
                          .width = in->dims[in->ndim - 1],
                          .y_width = op->out.dims[in->ndim - 1],
                          .taps = state->taps,
                          .from = from,
                          .to = to};

    work.y_lines = work.y_elems / work.y_width;
    simd_team_run(op->config.threads, in->dims[0] * in->dims[1],
                  1 + CPU_COMBINE_GRAIN / work.y_elems, body, &work);
}

static err_code_t cpu_upsample_linear_forward(op_t *op, const op_args_t *args,
                                              err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        linear_run(op, linear_forward_body, x[0], args->y);
    return rc;
}

static err_code_t cpu_upsample_linear_backward(op_t *op, const op_args_t *args,
                                               err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    linear_run(op, linear_backward_body, args->dy,
               cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_upsample_linear_kernel = {
    .open = cpu_upsample_linear_open,
    .close = cpu_upsample_linear_close,
    .forward = cpu_upsample_linear_forward,
    .backward = cpu_upsample_linear_backward,
};
