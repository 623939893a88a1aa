/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * mean of a plain x, seen as [outer, count, inner]. With inner > 1, vector
 * instructions add whole rows. With inner = 1, a row has SIMD_LANES partial
 * sums.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_geometry.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct cpu_mean_work {
    int64_t count, inner;
    const float *from;
    float *to;
} cpu_mean_work_t;

static err_code_t cpu_mean_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    return cpu_combine_open(op, true, err);
}

SIMD_CLONES
static float row_sum(const float *x, int64_t count)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES)
        for (int k = 0; k < SIMD_LANES; k++)
            lanes[k] += x[i + k];
    for (int k = 0; k < SIMD_LANES; k++)
        sum += lanes[k];
    for (; i < count; i++)
        sum += x[i];
    return sum;
}

SIMD_CLONES
static void rows_sum(const float *x, float *y, int64_t count, int64_t inner)
{
    memset(y, 0, (size_t)inner * sizeof *y);
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < inner; i++)
            y[i] += x[k * inner + i];
}

static void cpu_mean_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_mean_work_t *work = context;
    const float scale = 1.0f / (float)work->count;

    for (int64_t o = first; o < last; o++) {
        const float *x = work->from + o * work->count * work->inner;
        float *y = work->to + o * work->inner;

        if (work->inner == 1)
            *y = row_sum(x, work->count);
        else
            rows_sum(x, y, work->count, work->inner);
        for (int64_t i = 0; i < work->inner; i++)
            y[i] *= scale;
    }
}

SIMD_CLONES
static void row_fill(float *x, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = value;
}

SIMD_CLONES
static void cpu_mean_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_mean_work_t *work = context;
    const float scale = 1.0f / (float)work->count;

    for (int64_t o = first; work->inner == 1 && o < last; o++)
        row_fill(work->to + o * work->count, work->count,
                 work->from[o] * scale);
    for (int64_t o = first; work->inner > 1 && o < last; o++)
        for (int64_t k = 0; k < work->count; k++) {
            const float *dy = work->from + o * work->inner;
            float *dx = work->to + (o * work->count + k) * work->inner;

            for (int64_t i = 0; i < work->inner; i++)
                dx[i] = dy[i] * scale;
        }
}

static void cpu_mean_run(const op_t *op, simd_team_body_t *body,
                         const float *from, float *to)
{
    op_reduce_t mean = op_reduce_of(&op->config);
    cpu_mean_work_t work = {mean.count, mean.inner, from, to};

    simd_team_run(op->config.threads, mean.outer,
                  1 + CPU_COMBINE_GRAIN / (work.count * work.inner), body,
                  &work);
}

static err_code_t cpu_mean_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        cpu_mean_run(op, cpu_mean_body_forward, x[0], args->y);
    return rc;
}

static err_code_t cpu_mean_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    cpu_mean_run(op, cpu_mean_body_backward, args->dy,
                 cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_mean_kernel = {
    .open = cpu_mean_open,
    .close = cpu_combine_close,
    .forward = cpu_mean_forward,
    .backward = cpu_mean_backward,
};
