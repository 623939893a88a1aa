/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Forward goes through the windows, and in each through the taps inside x. If
 * channels are adjacent in memory, backward goes through the elements of x:
 * each sums, in order, dy of the windows in which it is the maximum. So each
 * element is written once, and threads can process lines independently. In
 * plain layout an image is one channel: each window adds its dy to its
 * maximum, and one thread processes an image.
 */
#include "op/cpu/ops/windows.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/half.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/box.h"
#include "op/cpu/ops/winner.h"
#include "op/op_geometry.h"
#include "simd/team.h"
#include "simd/vector.h"

#define LANES CPU_WINNER_LANES

typedef struct windows_work {
    const cpu_windows_t *windows;
    const void *from; /* x or dy */
    void *to;         /* y or dx */
    uint8_t *winners; /* NULL in evaluation */
    bool bf16;
    bool words; /* the winners in the workspace are int32_t */
} windows_work_t;

/* ---- opening ------------------------------------------------------------- */

/* Set the offsets of the taps of a window. */
static void windows_taps(cpu_windows_t *windows)
{
    const int64_t *in = windows->in, *kernel = windows->kernel;
    int next = 0;

    for (int64_t d = 0; d < kernel[0]; d++)
        for (int64_t h = 0; h < kernel[1]; h++)
            for (int64_t w = 0; w < kernel[2]; w++) {
                check(next < CPU_WINDOW_TAPS, "more taps than have a number");
                windows->tap[next++] =
                    ((d * in[1] + h) * in[2] + w) * windows->run;
            }
}

void cpu_windows_open(cpu_windows_t *windows, const op_t *op, int lanes)
{
    const op_desc_t *in = &op->config.in;
    const op_pool_t *pool = &op->config.pool;
    const int space = in->ndim - 2;

    windows->run = lanes == 0 ? in->dims[1] : lanes;
    windows->images =
        in->dims[0] * ((in->dims[1] + windows->run - 1) / windows->run);
    cpu_space_three(in->dims + 2, space, 1, windows->in);
    cpu_space_three(op->out.dims + 2, space, 1, windows->out);
    cpu_space_three(pool->kernel, space, 1, windows->kernel);
    cpu_space_three(pool->stride, space, 1, windows->stride);
    cpu_space_three(pool->pad, space, 0, windows->pad);
    windows->taps = op_window_taps(&op->config);
    windows->tiled = windows->taps <= CPU_WINDOW_TAPS;
    for (int i = 0; i < OP_SPACE_MAX; i++)
        windows->tiled = windows->tiled &&
                         windows->kernel[i] == windows->stride[i] &&
                         windows->pad[i] == 0 &&
                         windows->out[i] * windows->kernel[i] <= windows->in[i];
    if (windows->taps <= CPU_WINDOW_TAPS)
        windows_taps(windows);
}

static bool windows_need_words(const cpu_windows_t *windows)
{
    return windows->taps > CPU_WINDOW_TAPS;
}

size_t cpu_windows_bytes(const cpu_windows_t *windows, size_t elems)
{
    return elems *
           (windows_need_words(windows) ? sizeof(int32_t) : sizeof(uint8_t));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Set dimension [i] of [box] to the taps of window [o] that are inside x. */
static void box_set(const cpu_windows_t *windows, int i, int64_t o,
                    cpu_box_t *box)
{
    const int64_t first = o * windows->stride[i] - windows->pad[i];

    box->from[i] = most(0, -first);
    box->to[i] = least(windows->kernel[i], windows->in[i] - first);
}

/* Offset in x of tap 0 of the first window of [line] of y; may be before the
 * start of x. Sets dimensions 0 and 1 of [box] for the line. */
static int64_t line_begin(const cpu_windows_t *windows, int64_t line,
                          cpu_box_t *box)
{
    const int64_t *in = windows->in, *out = windows->out;
    const int64_t oh = line % out[1], od = line / out[1] % out[0];
    const int64_t image = line / out[1] / out[0];
    const int64_t d = od * windows->stride[0] - windows->pad[0];
    const int64_t h = oh * windows->stride[1] - windows->pad[1];

    box_set(windows, 0, od, box);
    box_set(windows, 1, oh, box);
    return (((image * in[0] + d) * in[1] + h) * in[2] - windows->pad[2]) *
           windows->run;
}

/* Number of the tap at [d, h, w] of a window. */
SIMD_INLINE int64_t tap_number(const cpu_windows_t *windows, int64_t d,
                               int64_t h, int64_t w)
{
    return (d * windows->kernel[1] + h) * windows->kernel[2] + w;
}

/* Offset in x of the tap at [d, h, w], relative to tap 0 of the window. */
SIMD_INLINE int64_t tap_at(const cpu_windows_t *windows, int64_t d, int64_t h,
                           int64_t w)
{
    return ((d * windows->in[1] + h) * windows->in[2] + w) * windows->run;
}

/* ---- forward ------------------------------------------------------------- */

/* A strip: windows or channels that are processed together. Neighbours are
 * [step] elements of x apart, and all have the taps of [box]. */
typedef struct strip {
    int64_t x, y; /* offset of tap 0 in x, offset of the result in y */
    int64_t step;
    const cpu_box_t *box;
} strip_t;

/* Number of the first tap; it wins if all elements are -infinity. */
SIMD_INLINE int strip_first(const cpu_windows_t *windows, const cpu_box_t *box)
{
    return (int)tap_number(windows, box->from[0], box->from[1], box->from[2]);
}

SIMD_INLINE void strip_floats(const windows_work_t *work, const strip_t *strip,
                              int n)
{
    const cpu_windows_t *windows = work->windows;
    const cpu_box_t box = *strip->box;
    float *y = (float *)work->to + strip->y;
    float buffer[LANES];
    cpu_winner_t winner;

    cpu_winner_begin(&winner, strip_first(windows, &box));
    for (int64_t d = box.from[0]; d < box.to[0]; d++)
        for (int64_t h = box.from[1]; h < box.to[1]; h++)
            for (int64_t w = box.from[2]; w < box.to[2]; w++) {
                const float *tap = (const float *)work->from +
                                   (strip->x + tap_at(windows, d, h, w));

                cpu_winner_take(&winner,
                                cpu_winner_read(tap, strip->step, n, buffer), n,
                                (int)tap_number(windows, d, h, w));
            }
    cpu_winner_end(
        &winner, n, y,
        work->winners == NULL || work->words ? NULL : work->winners + strip->y);
    if (work->winners != NULL && work->words)
        memcpy((int32_t *)(void *)work->winners + strip->y, winner.which,
               (size_t)n * sizeof(int32_t));
}

/* Like strip_floats, for bfloat16 and step 1. */
SIMD_INLINE void strip_halves(const windows_work_t *work, const strip_t *strip,
                              int n)
{
    const cpu_windows_t *windows = work->windows;
    const cpu_box_t box = *strip->box;
    uint16_t *y = (uint16_t *)work->to + strip->y;
    cpu_winner_half_t winner;

    cpu_winner_half_begin(&winner, strip_first(windows, &box));
    for (int64_t d = box.from[0]; d < box.to[0]; d++)
        for (int64_t h = box.from[1]; h < box.to[1]; h++)
            for (int64_t w = box.from[2]; w < box.to[2]; w++)
                cpu_winner_half_take(&winner,
                                     (const uint16_t *)work->from + strip->x +
                                         tap_at(windows, d, h, w),
                                     n, (int)tap_number(windows, d, h, w));
    cpu_winner_half_end(
        &winner, n, y,
        work->winners == NULL || work->words ? NULL : work->winners + strip->y);
    for (int i = 0; i < n && work->winners != NULL && work->words; i++)
        ((int32_t *)(void *)work->winners)[strip->y + i] =
            winner.which[i / CPU_WINNER_HALF][i % CPU_WINNER_HALF];
}

/* Called with a constant [n] for full strips, so that loops have a constant
 * length. */
SIMD_INLINE void strip_max(const windows_work_t *work, const strip_t *strip,
                           int n)
{
    if (work->bf16)
        strip_halves(work, strip, n);
    else
        strip_floats(work, strip, n);
}

/* Maxima of all channels of a window. */
SIMD_CLONES
static void window_max(const windows_work_t *work, const strip_t *window)
{
    const int64_t run = work->windows->run;
    strip_t strip = *window;
    int64_t c = 0;

    for (; c < run; strip.x = window->x + c, strip.y = window->y + c)
        if (c + LANES <= run) {
            strip_max(work, &strip, LANES);
            c += LANES;
        } else if (c + CPU_WINNER_WIDE <= run) {
            strip_max(work, &strip, CPU_WINNER_WIDE);
            c += CPU_WINNER_WIDE;
        } else {
            strip_max(work, &strip, (int)(run - c));
            c = run;
        }
}

/* Maxima of windows [from, to) of a line of one channel; all have the same
 * box. */
SIMD_CLONES
static void row_max(const windows_work_t *work, const strip_t *line,
                    int64_t from, int64_t to)
{
    const int64_t stride = work->windows->stride[2];
    const bool zip = stride == 2 && to - from >= SIMD_ZIP;
    const int n = zip ? SIMD_ZIP : LANES;
    strip_t strip = *line;

    strip.step = stride;
    for (int64_t i = from; i < to;) {
        strip.x = line->x + i * stride;
        strip.y = line->y + i;
        if (zip)
            strip_floats(work, &strip, SIMD_ZIP);
        else if (to - i >= LANES)
            strip_floats(work, &strip, LANES);
        else
            strip_floats(work, &strip, (int)(to - i));
        i = zip ? simd_zip_next(i, to) : i + n;
    }
}

/* Maxima of a line of one channel. Windows that reach beyond the ends of the
 * line are processed one by one, the others together. */
static void line_max(const windows_work_t *work, const strip_t *line,
                     cpu_box_t *box)
{
    const cpu_windows_t *windows = work->windows;
    const int64_t stride = windows->stride[2], pad = windows->pad[2];
    const int64_t count = windows->out[2];
    const int64_t last = windows->in[2] + pad - windows->kernel[2];
    const int64_t from = least((pad + stride - 1) / stride, count);
    const int64_t to =
        most(from, last < 0 ? 0 : least(last / stride + 1, count));

    for (int64_t i = 0; i < count; i++) {
        if (i == from && from < to) {
            box_set(windows, 2, i, box);
            row_max(work, line, from, to);
            i = to;
        }
        if (i < count) {
            box_set(windows, 2, i, box);
            row_max(work, line, i, i + 1);
        }
    }
}

/* Items of the parallel loop are lines of y. */
static void forward_body(void *context, int64_t first, int64_t last)
{
    const windows_work_t *work = context;
    const cpu_windows_t *windows = work->windows;
    const int64_t run = windows->run;

    for (int64_t line = first; line < last; line++) {
        cpu_box_t box;
        const int64_t x = line_begin(windows, line, &box);
        strip_t strip = {x, line * windows->out[2] * run, 1, &box};

        if (run == 1 && !work->bf16) {
            line_max(work, &strip, &box);
            continue;
        }
        for (int64_t ow = 0; ow < windows->out[2]; ow++) {
            box_set(windows, 2, ow, &box);
            window_max(work, &strip);
            strip.x += windows->stride[2] * run;
            strip.y += run;
        }
    }
}

/* Divide [lines] lines of [width] elements each among threads. */
static void windows_team(const op_t *op, windows_work_t *work, int64_t lines,
                         int64_t width, simd_team_body_t *body)
{
    work->bf16 = op_stored_bf16(&op->out);
    work->words = windows_need_words(work->windows);
    simd_team_run(op->config.threads, lines, 1 + 4096 / width, body, work);
}

void cpu_windows_forward(const cpu_windows_t *windows, const op_t *op,
                         const op_args_t *args)
{
    const int64_t *out = windows->out;
    windows_work_t work = {.windows = windows,
                           .from = args->x,
                           .to = args->y,
                           .winners =
                               op->config.training ? args->workspace : NULL};

    windows_team(op, &work, windows->images * out[0] * out[1],
                 out[2] * windows->run, forward_body);
}

/* ---- backward, where channels are adjacent ------------------------------- */

/* Set dimension [i] of [box] to the windows that read element [at] of that
 * dimension; [at] counts the padding before x. */
static void box_readers(const cpu_windows_t *windows, int i, int64_t at,
                        cpu_box_t *box)
{
    const int64_t stride = windows->stride[i];
    const int64_t from = at - windows->kernel[i];

    box->from[i] = from < 0 ? 0 : from / stride + 1;
    box->to[i] = least(at / stride + 1, windows->out[i]);
}

/* A position of x, with all its channels. */
typedef struct position {
    int64_t at[OP_SPACE_MAX]; /* index, counting the padding before x */
    int64_t x;                /* offset in x */
    int64_t image;            /* offset in y of its image */
    cpu_box_t readers;
} position_t;

/* Add dy to [sum] where tap [k] has won, for [n] elements of y from offset [y]
 * on, at most CPU_WINNER_WIDE. [bf16] and [words] repeat fields of [work], so
 * that they can be constants. */
SIMD_INLINE void winner_add(const windows_work_t *work, bool bf16, bool words,
                            int64_t y, int k, int n, cpu_wide_t *sum)
{
    const int32_t wanted = words ? k : k * 0x01010101;
    cpu_wide_int_t which = {0}, dy = {0};
    cpu_half_bits_t halves = {0};

    if (words)
        memcpy(&which, (const int32_t *)(const void *)work->winners + y,
               (size_t)n * sizeof(int32_t));
    else
        cpu_winner_expand(work->winners + y, n, &which);
    if (bf16) {
        memcpy(&halves, (const uint16_t *)work->from + y,
               (size_t)n * sizeof(uint16_t));
        dy = __builtin_convertvector(halves, cpu_wide_int_t) << 16;
    } else {
        memcpy(&dy, (const float *)work->from + y, (size_t)n * sizeof(float));
    }
    *sum += (cpu_wide_t)(dy & (which == wanted));
}

SIMD_INLINE void position_gather(const windows_work_t *work, bool bf16,
                                 bool words, const position_t *position,
                                 int64_t c, int n)
{
    const cpu_windows_t *windows = work->windows;
    const int64_t *out = windows->out, *stride = windows->stride;
    const int64_t *at = position->at, run = windows->run;
    const cpu_box_t box = position->readers;
    const int64_t step = stride[2];
    cpu_wide_t sum = {0};

    for (int64_t d = box.from[0]; d < box.to[0]; d++)
        for (int64_t h = box.from[1]; h < box.to[1]; h++) {
            int64_t y = position->image + c +
                        ((d * out[1] + h) * out[2] + box.from[2]) * run;
            int64_t k =
                tap_number(windows, at[0] - d * stride[0],
                           at[1] - h * stride[1], at[2] - box.from[2] * step);

            for (int64_t w = box.from[2]; w < box.to[2]; w++) {
                winner_add(work, bf16, words, y, (int)k, n, &sum);
                y += run;
                k -= step;
            }
        }
    if (bf16) {
        float sums[CPU_WINNER_WIDE];

        memcpy(sums, &sum, sizeof sums);
        half_round_bf16((uint16_t *)work->to + position->x + c, sums,
                        (size_t)n);
    } else {
        memcpy((float *)work->to + position->x + c, &sum,
               (size_t)n * sizeof(float));
    }
}

SIMD_INLINE void position_all(const windows_work_t *work, bool bf16, bool words,
                              const position_t *position)
{
    const int64_t run = work->windows->run;
    int64_t c = 0;

    for (; c + CPU_WINNER_WIDE <= run; c += CPU_WINNER_WIDE)
        position_gather(work, bf16, words, position, c, CPU_WINNER_WIDE);
    if (c < run)
        position_gather(work, bf16, words, position, c, (int)(run - c));
}

SIMD_CLONES
static void position_sum(const windows_work_t *work, const position_t *position)
{
    if (work->words)
        position_all(work, work->bf16, true, position);
    else if (work->bf16)
        position_all(work, true, false, position);
    else
        position_all(work, false, false, position);
}

/* Move to the next element of the line. Updates its windows without a
 * division. */
static void position_next(const cpu_windows_t *windows, position_t *position)
{
    const int64_t stride = windows->stride[2];
    const int64_t at = ++position->at[2];
    int64_t *from = &position->readers.from[2], *to = &position->readers.to[2];

    position->x += windows->run;
    *from += *from * stride + windows->kernel[2] <= at;
    *to += *to * stride <= at && *to < windows->out[2];
}

/* Items of the parallel loop are lines of x. */
static void gather_body(void *context, int64_t first, int64_t last)
{
    const windows_work_t *work = context;
    const cpu_windows_t *windows = work->windows;
    const int64_t *in = windows->in, *out = windows->out, *pad = windows->pad;

    for (int64_t line = first; line < last; line++) {
        const int64_t image = line / in[1] / in[0];
        const int64_t d = line / in[1] % in[0], h = line % in[1];
        position_t position = {.at = {d + pad[0], h + pad[1], pad[2]},
                               .x = line * in[2] * windows->run,
                               .image = image * out[0] * out[1] * out[2] *
                                        windows->run};

        box_readers(windows, 0, position.at[0], &position.readers);
        box_readers(windows, 1, position.at[1], &position.readers);
        box_readers(windows, 2, position.at[2], &position.readers);
        for (int64_t w = 0; w < in[2]; w++) {
            position_sum(work, &position);
            position_next(windows, &position);
        }
    }
}

/* ---- backward of plain images -------------------------------------------- */

static int64_t place_of_tap(const cpu_windows_t *windows, int64_t k)
{
    const int64_t *kernel = windows->kernel;

    return tap_at(windows, k / kernel[2] / kernel[1], k / kernel[2] % kernel[1],
                  k % kernel[2]);
}

/* Items of the parallel loop are images. */
static void scatter_body(void *context, int64_t first, int64_t last)
{
    const windows_work_t *work = context;
    const cpu_windows_t *windows = work->windows;
    const int64_t *in = windows->in, *out = windows->out;
    const int64_t size = in[0] * in[1] * in[2], lines = out[0] * out[1];
    const float *dy = work->from;
    float *dx = work->to;

    memset(dx + first * size, 0, (size_t)((last - first) * size) * sizeof *dx);
    for (int64_t line = first * lines; line < last * lines; line++) {
        cpu_box_t box;
        int64_t x = line_begin(windows, line, &box), y = line * out[2];

        for (int64_t i = 0; i < out[2]; i++, y++, x += windows->stride[2]) {
            check(work->words || work->winners[y] < windows->taps,
                  "tap %d has won of %d", work->winners[y], (int)windows->taps);
            if (work->words)
                dx[x + place_of_tap(windows, ((const int32_t *)(const void *)
                                                  work->winners)[y])] += dy[y];
            else
                dx[x + windows->tap[work->winners[y]]] += dy[y];
        }
    }
}

void cpu_windows_backward(const cpu_windows_t *windows, const op_t *op,
                          const op_args_t *args)
{
    const int64_t *in = windows->in;
    windows_work_t work = {.windows = windows,
                           .from = args->dy,
                           .to = args->dx,
                           .winners = args->workspace};

    if (windows->run == 1 && !op_stored_bf16(&op->out))
        windows_team(op, &work, windows->images, in[0] * in[1] * in[2],
                     scatter_body);
    else
        windows_team(op, &work, windows->images * in[0] * in[1],
                     in[2] * windows->run, gather_body);
}
