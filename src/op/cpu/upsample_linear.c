/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * upsample_linear of a plain x, with a table of the taps of each dimension. For
 * a line of y the 1, 2 or 4 lines of x around it are mixed first, a piece at a
 * time, and the piece is stretched then; backward goes the other way round.
 * Images [n, c] are shared among threads.
 */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/combine.h"
#include "op/cpu/cpu.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

#define PIECE 256
#define LINES_MAX 4 /* around a line of y */

typedef struct linear_tap {
    int64_t first, second;
    float weight; /* of the second */
} linear_tap_t;

typedef struct cpu_upsample_linear {
    cpu_combine_t combine; /* first: it is the op's state to combine.c */
    linear_tap_t *taps[OP_SPACE_MAX];
} cpu_upsample_linear_t;

typedef struct linear_work {
    int space;                /* dimensions of an image */
    const int64_t *in, *out;  /* its sizes in x and y */
    int64_t x_elems, y_elems; /* of an image */
    int64_t y_lines, width, wide;
    linear_tap_t *const *taps;
    const float *from;
    float *to;
} linear_work_t;

static err_code_t linear_tables(op_t *op, err_t *err)
{
    cpu_upsample_linear_t *state = op->state;
    const op_desc_t *in = &op->config.in;
    err_code_t code = ERR_OK;

    for (int d = 0; d < in->ndim - 2 && code == ERR_OK; d++) {
        const int64_t count = op->out.dims[2 + d];
        void *block;

        code = mem_alloc((size_t)count * sizeof(linear_tap_t),
                         "a table of neighbours", &block, err);
        if (code != ERR_OK)
            break;
        state->taps[d] = block;
        for (int64_t i = 0; i < count; i++) {
            op_tap_t tap =
                op_upsample_tap(i, op->config.view.dims[d], in->dims[2 + d]);

            state->taps[d][i] =
                (linear_tap_t){tap.first, tap.second, (float)tap.weight};
        }
    }
    return code;
}

static err_code_t cpu_upsample_linear_open(op_t *op, err_t *err)
{
    err_code_t code =
        cpu_combine_open_in(op, sizeof(cpu_upsample_linear_t), true, err);

    op->reads_x = false;
    return code == ERR_OK ? linear_tables(op, err) : code;
}

static void cpu_upsample_linear_close(op_t *op)
{
    cpu_upsample_linear_t *state = op->state;

    for (int d = 0; state != NULL && d < OP_SPACE_MAX; d++)
        mem_free(state->taps[d]);
    cpu_combine_close(op);
}

/* The lines of x around line [at] of y, and their weights; returns how many. */
static int linear_lines(const linear_work_t *work, int64_t at,
                        int64_t lines[LINES_MAX], float weights[LINES_MAX])
{
    int64_t step = 1;
    int count = 1;

    lines[0] = 0;
    weights[0] = 1;
    for (int d = work->space - 2; d >= 0; d--) {
        const linear_tap_t *tap = &work->taps[d][at % work->out[d]];

        for (int i = 0; i < count; i++) {
            lines[count + i] = lines[i] + tap->second * step;
            weights[count + i] = weights[i] * tap->weight;
            lines[i] += tap->first * step;
            weights[i] *= 1 - tap->weight;
        }
        count *= 2;
        at /= work->out[d];
        step *= work->in[d];
    }
    return count;
}

/* Columns [a, a + count) of the lines mixed into [to]. */
CPU_CLONES
static void linear_mix(const float *image, int64_t width, const int64_t *lines,
                       const float *weights, int number, int64_t a,
                       int64_t count, float *restrict to)
{
    memset(to, 0, (size_t)count * sizeof *to);
    for (int k = 0; k < number; k++) {
        const float *x = image + lines[k] * width + a;

        for (int64_t i = 0; i < count; i++)
            to[i] += weights[k] * x[i];
    }
}

/* The other way: [from] is added to the lines. */
CPU_CLONES
static void linear_spread(float *image, int64_t width, const int64_t *lines,
                          const float *weights, int number, int64_t a,
                          int64_t count, const float *from)
{
    for (int k = 0; k < number; k++) {
        float *restrict x = image + lines[k] * width + a;

        for (int64_t i = 0; i < count; i++)
            x[i] += weights[k] * from[i];
    }
}

/* Columns of x that a piece from [a] on reads: one more than it begins at. */
static int64_t linear_piece(const linear_work_t *work, int64_t a)
{
    return work->width - a < PIECE + 1 ? work->width - a : PIECE + 1;
}

static void linear_line_forward(const linear_work_t *work, const float *image,
                                int64_t line, float *y)
{
    const linear_tap_t *taps = work->taps[work->space - 1];
    int64_t lines[LINES_MAX], j = 0;
    float weights[LINES_MAX], mixed[PIECE + 1];
    int number = linear_lines(work, line, lines, weights);

    for (int64_t a = 0; a < work->width; a += PIECE) {
        linear_mix(image, work->width, lines, weights, number, a,
                   linear_piece(work, a), mixed);
        for (; j < work->wide && taps[j].first < a + PIECE; j++)
            y[j] = mixed[taps[j].first - a] * (1 - taps[j].weight) +
                   mixed[taps[j].second - a] * taps[j].weight;
    }
}

static void linear_line_backward(const linear_work_t *work, const float *dy,
                                 int64_t line, float *image)
{
    const linear_tap_t *taps = work->taps[work->space - 1];
    int64_t lines[LINES_MAX], j = 0;
    float weights[LINES_MAX], mixed[PIECE + 1];
    int number = linear_lines(work, line, lines, weights);

    for (int64_t a = 0; a < work->width; a += PIECE) {
        memset(mixed, 0, sizeof mixed);
        for (; j < work->wide && taps[j].first < a + PIECE; j++) {
            mixed[taps[j].first - a] += dy[j] * (1 - taps[j].weight);
            mixed[taps[j].second - a] += dy[j] * taps[j].weight;
        }
        linear_spread(image, work->width, lines, weights, number, a,
                      linear_piece(work, a), mixed);
    }
}

static void linear_forward_body(void *context, int64_t first, int64_t last)
{
    const linear_work_t *work = context;

    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++)
            linear_line_forward(work, work->from + n * work->x_elems, line,
                                work->to + n * work->y_elems +
                                    line * work->wide);
}

static void linear_backward_body(void *context, int64_t first, int64_t last)
{
    const linear_work_t *work = context;

    memset(work->to + first * work->x_elems, 0,
           (size_t)((last - first) * work->x_elems) * sizeof(float));
    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++)
            linear_line_backward(
                work, work->from + n * work->y_elems + line * work->wide, line,
                work->to + n * work->x_elems);
}

static void linear_run(const op_t *op, cpu_team_body_t *body, const float *from,
                       float *to)
{
    const cpu_upsample_linear_t *state = op->state;
    const op_desc_t *in = &op->config.in;
    linear_work_t work = {.space = in->ndim - 2,
                          .in = in->dims + 2,
                          .out = op->out.dims + 2,
                          .x_elems = op_desc_space(in),
                          .y_elems = op_desc_space(&op->out),
                          .width = in->dims[in->ndim - 1],
                          .wide = op->out.dims[in->ndim - 1],
                          .taps = state->taps,
                          .from = from,
                          .to = to};

    work.y_lines = work.y_elems / work.wide;
    cpu_team_run(op->config.threads, in->dims[0] * in->dims[1],
                 1 + CPU_COMBINE_GRAIN / work.y_elems, body, &work);
}

static err_code_t cpu_upsample_linear_forward(op_t *op, const op_args_t *args,
                                              err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t code = cpu_combine_read(op, args, x, err);

    if (code == ERR_OK)
        linear_run(op, linear_forward_body, x[0], args->y);
    return code;
}

static err_code_t cpu_upsample_linear_backward(op_t *op, const op_args_t *args,
                                               err_t *err)
{
    cpu_combine_t *combine = op->state;
    cpu_port_t *port = &combine->grad[0];

    if (!op->config.need_dx)
        return ERR_OK;
    linear_run(op, linear_backward_body, args->dy,
               cpu_port_place(port, args, args->dx));
    return cpu_port_flush(port, &combine->room, args, args->dx, err);
}

const op_kernel_t cpu_upsample_linear_kernel = {
    .open = cpu_upsample_linear_open,
    .close = cpu_upsample_linear_close,
    .forward = cpu_upsample_linear_forward,
    .backward = cpu_upsample_linear_backward,
};
