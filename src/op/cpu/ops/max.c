/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * max of a plain x, seen as [outer, count, inner]. With inner > 1, vector
 * instructions compare whole rows. With inner = 1, vector instructions first
 * find the largest value, then its first position. Values are compared as
 * integers with the same order as the floats: the maximum of integers does not
 * depend on the order of comparison, so the compiler can vectorise the loop.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define PIECE 1024 /* positions that are searched together */

typedef struct max_work {
    int64_t count, inner;
    const float *from;
    float *to;
    int64_t *winners; /* NULL in evaluation */
} max_work_t;

static err_code_t cpu_max_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    if (op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    return cpu_combine_open(op, true, err);
}

/* Map a float to an integer of the same order. 0 and -0 are equal, and NaN is
 * above all numbers. Written without a condition, which the compiler would
 * turn into branches. */
SIMD_INLINE int32_t max_key(float x)
{
    int32_t bits, sign, size, nan;

    memcpy(&bits, &x, sizeof bits);
    sign = -(bits < 0);
    size = bits & INT32_MAX;
    nan = -(size > 0x7f800000);
    return (((size ^ sign) - sign) & ~nan) | (nan & INT32_MAX);
}

/* Index of the maximum of x[0 .. count): the first NaN, or else the first
 * element that no other one exceeds. */
SIMD_CLONES
static int64_t row_winner(const float *x, int64_t count)
{
    int32_t most = INT32_MIN, first = PIECE;
    int64_t begin = 0;

    for (int64_t i = 0; i < count; i++) {
        const int32_t key = max_key(x[i]);

        most = key > most ? key : most;
    }
    for (;; begin += PIECE) {
        const int32_t n =
            count - begin < PIECE ? (int32_t)(count - begin) : PIECE;

        for (int32_t i = 0; i < n; i++) {
            const int32_t place = max_key(x[begin + i]) == most ? i : PIECE;

            first = place < first ? place : first;
        }
        if (first < PIECE)
            return begin + first;
    }
}

/* Maximum over [count] rows for each of [inner] columns; NaN wins. */
SIMD_CLONES
static void rows_max(const float *x, float *restrict y, int64_t count,
                     int64_t inner)
{
    memcpy(y, x, (size_t)inner * sizeof *y);
    for (int64_t k = 1; k < count; k++)
        for (int64_t i = 0; i < inner; i++) {
            float value = x[k * inner + i];
            int better = (y[i] == y[i]) & !(value <= y[i]);

            y[i] = better ? value : y[i];
        }
}

SIMD_CLONES
static void rows_winners(const float *x, float *restrict y,
                         int64_t *restrict winners, int64_t count,
                         int64_t inner)
{
    memcpy(y, x, (size_t)inner * sizeof *y);
    memset(winners, 0, (size_t)inner * sizeof *winners);
    for (int64_t k = 1; k < count; k++)
        for (int64_t i = 0; i < inner; i++) {
            float value = x[k * inner + i];
            int better = (y[i] == y[i]) & !(value <= y[i]);

            y[i] = better ? value : y[i];
            winners[i] = better ? k : winners[i];
        }
}

static void max_forward_body(void *context, int64_t first, int64_t last)
{
    const max_work_t *work = context;

    for (int64_t o = first; o < last; o++) {
        const float *x = work->from + o * work->count * work->inner;
        float *y = work->to + o * work->inner;
        int64_t *winners =
            work->winners == NULL ? NULL : work->winners + o * work->inner;

        if (work->inner == 1) {
            int64_t winner = row_winner(x, work->count);

            *y = x[winner];
            if (winners != NULL)
                *winners = winner;
        } else if (winners != NULL) {
            rows_winners(x, y, winners, work->count, work->inner);
        } else {
            rows_max(x, y, work->count, work->inner);
        }
    }
}

static void max_backward_body(void *context, int64_t first, int64_t last)
{
    const max_work_t *work = context;
    const int64_t size = work->count * work->inner;

    memset(work->to + first * size, 0,
           (size_t)((last - first) * size) * sizeof(float));
    for (int64_t o = first; o < last; o++)
        for (int64_t i = 0; i < work->inner; i++) {
            int64_t at = o * work->inner + i;

            work->to[o * size + work->winners[at] * work->inner + i] =
                work->from[at];
        }
}

static void max_run(const op_t *op, const op_args_t *args,
                    simd_team_body_t *body, const float *from, float *to)
{
    op_reduce_t r = op_reduce_of(&op->config);
    max_work_t work = {r.count, r.inner, from, to,
                       op->config.training ? args->workspace : NULL};

    simd_team_run(op->config.threads, r.outer,
                  1 + CPU_COMBINE_GRAIN / (r.count * r.inner), body, &work);
}

static err_code_t cpu_max_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        max_run(op, args, max_forward_body, x[0], args->y);
    return rc;
}

static err_code_t cpu_max_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    max_run(op, args, max_backward_body, args->dy,
            cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_max_kernel = {
    .open = cpu_max_open,
    .close = cpu_combine_close,
    .forward = cpu_max_forward,
    .backward = cpu_max_backward,
};
