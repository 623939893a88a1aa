/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A strip is a group of elements that vector instructions process together:
 * channels of one window or, if an image has one channel, windows of one line.
 * Neighbours in a strip are [step] elements of x apart: 1, or the width of a
 * window.
 */
#include "op/cpu/ops/tiles.h"

#include <string.h>

#include "base/check.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/winner.h"
#include "op/cpu/vector/chunk.h"
#include "simd/team.h"
#include "simd/vector.h"

#define LANES CPU_WINNER_LANES /* maximum elements of a strip */

typedef struct tiles_work {
    const cpu_windows_t *tiles;
    const void *from; /* x or dy */
    void *to;         /* y or dx */
    uint8_t *winners; /* NULL in evaluation */
    bool bf16;
} tiles_work_t;

/* Offset in x of the first element of window [ow] of line [line] of y. */
static int64_t tiles_window(const cpu_windows_t *tiles, int64_t line,
                            int64_t ow)
{
    const int64_t *in = tiles->in, *out = tiles->out, *kernel = tiles->kernel;
    const int64_t oh = line % out[1], od = line / out[1] % out[0];
    const int64_t image = line / out[1] / out[0];

    return (((image * in[0] + od * kernel[0]) * in[1] + oh * kernel[1]) *
                in[2] +
            ow * kernel[2]) *
           tiles->run;
}

/* ---- forward ------------------------------------------------------------- */

SIMD_INLINE void max_halves(const cpu_windows_t *tiles, const uint16_t *x,
                            int n, uint16_t *y, uint8_t *winners)
{
    cpu_winner_half_t winner;

    cpu_winner_half_begin(&winner, 0);
    for (int k = 0; k < (int)tiles->taps; k++)
        cpu_winner_half_take(&winner, x + tiles->tap[k], n, k);
    cpu_winner_half_end(&winner, n, y, winners);
}

SIMD_INLINE void max_floats(const cpu_windows_t *tiles, const float *x,
                            int64_t step, int n, float *y, uint8_t *winners)
{
    cpu_winner_t winner;
    float buffer[LANES];

    cpu_winner_begin(&winner, 0);
    for (int k = 0; k < (int)tiles->taps; k++)
        cpu_winner_take(
            &winner, cpu_winner_read(x + tiles->tap[k], step, n, buffer), n, k);
    cpu_winner_end(&winner, n, y, winners);
}

/* Maxima of a strip of [n] elements. Callers pass a constant [n] for full
 * strips, so that loops have a constant length. */
SIMD_INLINE void max_strip(const tiles_work_t *work, int64_t x, int64_t step,
                           int64_t y, int n)
{
    uint8_t *winners = work->winners == NULL ? NULL : work->winners + y;

    if (work->bf16) /* step is 1 */
        max_halves(work->tiles, (const uint16_t *)work->from + x, n,
                   (uint16_t *)work->to + y, winners);
    else
        max_floats(work->tiles, (const float *)work->from + x, step, n,
                   (float *)work->to + y, winners);
}

SIMD_CLONES
static void max_window(const tiles_work_t *work, int64_t x, int64_t y)
{
    const int64_t run = work->tiles->run;
    int64_t c = 0;

    for (; c + LANES <= run; c += LANES)
        max_strip(work, x + c, 1, y + c, LANES);
    for (; c + CPU_WINNER_WIDE <= run; c += CPU_WINNER_WIDE)
        max_strip(work, x + c, 1, y + c, CPU_WINNER_WIDE);
    if (c < run)
        max_strip(work, x + c, 1, y + c, (int)(run - c));
}

/* Maxima of all windows of a line of one channel. */
SIMD_CLONES
static void max_line(const tiles_work_t *work, int64_t x, int64_t y)
{
    const int64_t step = work->tiles->kernel[2], count = work->tiles->out[2];

    if (step == 2 && count >= SIMD_ZIP)
        for (int64_t i = 0; i < count; i = simd_zip_next(i, count))
            max_strip(work, x + i * 2, 2, y + i, SIMD_ZIP);
    else
        for (int64_t i = 0; i < count; i += LANES)
            max_strip(work, x + i * step, step, y + i,
                      (int)(count - i < LANES ? count - i : LANES));
}

/* Items of the parallel loop are lines of y. */
static void forward_body(void *context, int64_t first, int64_t last)
{
    const tiles_work_t *work = context;
    const cpu_windows_t *tiles = work->tiles;

    for (int64_t line = first; line < last; line++) {
        if (tiles->run == 1 && !work->bf16)
            max_line(work, tiles_window(tiles, line, 0), line * tiles->out[2]);
        for (int64_t ow = 0;
             ow < tiles->out[2] && (tiles->run > 1 || work->bf16); ow++)
            max_window(work, tiles_window(tiles, line, ow),
                       (line * tiles->out[2] + ow) * tiles->run);
    }
}

static void tiles_team(const op_t *op, tiles_work_t *work,
                       simd_team_body_t *body)
{
    const int64_t *out = work->tiles->out;

    for (int i = 0; i < OP_SPACE_MAX; i++)
        check(out[i] * work->tiles->kernel[i] <= work->tiles->in[i],
              "windows reach beyond x in dimension %d", i);
    work->bf16 = op_stored_bf16(&op->out);
    simd_team_run(op->config.threads, work->tiles->images * out[0] * out[1],
                  1 + 4096 / (out[2] * work->tiles->run), body, work);
}

void cpu_tiles_forward(const cpu_windows_t *tiles, const op_t *op,
                       const op_args_t *args)
{
    tiles_work_t work = {.tiles = tiles,
                         .from = args->x,
                         .to = args->y,
                         .winners =
                             op->config.training ? args->workspace : NULL};

    tiles_team(op, &work, forward_body);
}

/* ---- backward ------------------------------------------------------------ */

/* [which] and [value] are copies with the element width of dx, which stores to
 * dx cannot change; so the compiler can vectorise the loops. */
SIMD_INLINE void scatter_halves(const cpu_windows_t *tiles, const uint16_t *dy,
                                const uint8_t *winners, int n, uint16_t *dx)
{
    uint16_t which[LANES], value[LANES];

    for (int i = 0; i < n; i++)
        which[i] = winners[i];
    for (int i = 0; i < n; i++)
        value[i] = dy[i];
    for (int k = 0; k < (int)tiles->taps; k++) {
        uint16_t *tap = dx + tiles->tap[k];

        for (int i = 0; i < n; i++)
            tap[i] = (uint16_t)(which[i] == (uint16_t)k ? value[i] : 0);
    }
}

SIMD_INLINE void scatter_floats(const cpu_windows_t *tiles, const float *dy,
                                const uint8_t *winners, int n, float *dx)
{
    int32_t which[LANES];
    float value[LANES];

    for (int i = 0; i < n; i++)
        which[i] = winners[i];
    for (int i = 0; i < n; i++)
        value[i] = dy[i];
    for (int k = 0; k < (int)tiles->taps; k++) {
        float *tap = dx + tiles->tap[k];

        for (int i = 0; i < n; i++)
            tap[i] = which[i] == k ? value[i] : 0;
    }
}

SIMD_INLINE void scatter_lanes(const tiles_work_t *work, int64_t y, int64_t x,
                               int n)
{
    if (work->bf16)
        scatter_halves(work->tiles, (const uint16_t *)work->from + y,
                       work->winners + y, n, (uint16_t *)work->to + x);
    else
        scatter_floats(work->tiles, (const float *)work->from + y,
                       work->winners + y, n, (float *)work->to + x);
}

SIMD_CLONES
static void scatter_window(const tiles_work_t *work, int64_t y, int64_t x)
{
    const int64_t run = work->tiles->run;
    int64_t c = 0;

    for (; c + LANES <= run; c += LANES)
        scatter_lanes(work, y + c, x + c, LANES);
    for (; c + CPU_WINNER_WIDE <= run; c += CPU_WINNER_WIDE)
        scatter_lanes(work, y + c, x + c, CPU_WINNER_WIDE);
    if (c < run)
        scatter_lanes(work, y + c, x + c, (int)(run - c));
}

/* SIMD_ZIP windows of a line of one channel; each window is two elements wide.
 */
SIMD_INLINE void scatter_pairs(const cpu_windows_t *tiles, const float *dy,
                               const uint8_t *winners, float *dx)
{
    float value[SIMD_ZIP], even[SIMD_ZIP], odd[SIMD_ZIP];
    int32_t which[SIMD_ZIP];

    for (int i = 0; i < SIMD_ZIP; i++)
        which[i] = winners[i];
    for (int i = 0; i < SIMD_ZIP; i++)
        value[i] = dy[i];
    for (int k = 0; k < (int)tiles->taps; k += 2) {
        for (int i = 0; i < SIMD_ZIP; i++)
            even[i] = which[i] == k ? value[i] : 0;
        for (int i = 0; i < SIMD_ZIP; i++)
            odd[i] = which[i] == k + 1 ? value[i] : 0;
        simd_zip(even, odd, dx + tiles->tap[k]);
    }
}

SIMD_CLONES
static void scatter_line(const tiles_work_t *work, int64_t y, int64_t x)
{
    const cpu_windows_t *tiles = work->tiles;
    const int64_t wide = tiles->kernel[2], count = tiles->out[2];
    const uint8_t *winners = work->winners + y;
    const float *dy = (const float *)work->from + y;
    float *dx = (float *)work->to + x;

    if (wide == 2 && count >= SIMD_ZIP)
        for (int64_t i = 0; i < count; i = simd_zip_next(i, count))
            scatter_pairs(tiles, dy + i, winners + i, dx + 2 * i);
    else
        for (int k = 0; k < (int)tiles->taps; k++)
            for (int64_t i = 0; i < count; i++)
                dx[tiles->tap[k] + i * wide] = winners[i] == k ? dy[i] : 0;
}

static void clear(const tiles_work_t *work, int64_t from, int64_t positions)
{
    const int64_t run = work->tiles->run;

    check(from >= 0 && positions >= 0, "%d positions", (int)positions);
    memset(cpu_chunk_at(work->to, from, work->bf16), 0,
           (size_t)(positions * run) *
               (work->bf16 ? sizeof(uint16_t) : sizeof(float)));
}

/* Set dx to 0 where no window covers x: after the last window in each line of
 * x that [line] of y reads. If [line] is the last of its plane or image, also
 * in the lines or planes of x after it. */
static void clear_rest(const tiles_work_t *work, int64_t line)
{
    const cpu_windows_t *tiles = work->tiles;
    const int64_t *in = tiles->in, *out = tiles->out, *kernel = tiles->kernel;
    const int64_t row = in[2] * tiles->run,
                  begin = tiles_window(tiles, line, 0);
    const int64_t covered = out[2] * kernel[2];
    const bool ends_plane = line % out[1] == out[1] - 1;
    const bool ends_image = line / out[1] % out[0] == out[0] - 1;

    for (int64_t d = 0; d < kernel[0]; d++) {
        const int64_t plane = begin + d * in[1] * row;

        for (int64_t h = 0; h < kernel[1] && covered < in[2]; h++)
            clear(work, plane + h * row + covered * tiles->run,
                  in[2] - covered);
        if (ends_plane)
            clear(work, plane + kernel[1] * row,
                  (in[1] - out[1] * kernel[1]) * in[2]);
    }
    if (ends_plane && ends_image) {
        const int64_t left = in[0] - out[0] * kernel[0];
        const int64_t image = line / out[1] / out[0];

        clear(work, ((image + 1) * in[0] - left) * in[1] * row,
              left * in[1] * in[2]);
    }
}

static void backward_body(void *context, int64_t first, int64_t last)
{
    const tiles_work_t *work = context;
    const cpu_windows_t *tiles = work->tiles;

    for (int64_t line = first; line < last; line++) {
        if (tiles->run == 1 && !work->bf16)
            scatter_line(work, line * tiles->out[2],
                         tiles_window(tiles, line, 0));
        for (int64_t ow = 0;
             ow < tiles->out[2] && (tiles->run > 1 || work->bf16); ow++)
            scatter_window(work, (line * tiles->out[2] + ow) * tiles->run,
                           tiles_window(tiles, line, ow));
        clear_rest(work, line);
    }
}

void cpu_tiles_backward(const cpu_windows_t *tiles, const op_t *op,
                        const op_args_t *args)
{
    tiles_work_t work = {.tiles = tiles,
                         .from = args->dy,
                         .to = args->dx,
                         .winners = args->workspace};

    tiles_team(op, &work, backward_body);
}
