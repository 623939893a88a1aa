/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mse: differences are computed in float, squares and their sums in double. */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/loss.h"
#include "op/op_desc.h"
#include "op/op_loss.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct cpu_mse_work {
    const float *x, *target;
    int64_t elems; /* of one sample */
    double *losses;
    float *dx;
    float factor;
} cpu_mse_work_t;

/* Minimum elements per thread. */
#define CPU_MSE_GRAIN 16384

static int64_t cpu_mse_grain(int64_t elems)
{
    return elems >= CPU_MSE_GRAIN ? 1 : CPU_MSE_GRAIN / elems;
}

SIMD_CLONES
static void cpu_mse_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_mse_work_t *work = context;

    for (int64_t n = first; n < last; n++) {
        const float *x = work->x + n * work->elems;
        const float *target = work->target + n * work->elems;
        double lanes[SIMD_LANES] = {0}, sum = 0;
        int64_t i = 0;

        for (; i + SIMD_LANES <= work->elems; i += SIMD_LANES)
            for (int k = 0; k < SIMD_LANES; k++) {
                double d = (double)(x[i + k] - target[i + k]);

                lanes[k] += d * d;
            }
        for (; i < work->elems; i++) {
            double d = (double)(x[i] - target[i]);

            sum += d * d;
        }
        for (int k = 0; k < SIMD_LANES; k++)
            sum += lanes[k];
        work->losses[n] = sum;
    }
}

SIMD_CLONES
static void cpu_mse_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_mse_work_t *work = context;

    for (int64_t i = first * work->elems; i < last * work->elems; i++)
        work->dx[i] = work->factor * (work->x[i] - work->target[i]);
}

static err_code_t cpu_mse_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_loss_t *loss = op->state;
    cpu_mse_work_t work = {
        .target = args->target,
        .elems = op_desc_sample(&op->config.in),
        .losses = cpu_loss_items(op, args),
    };
    const void *x;
    err_code_t rc = cpu_reorder_read(&loss->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x;
    simd_team_run(op->config.threads, op->config.in.dims[0],
                  cpu_mse_grain(work.elems), cpu_mse_body_forward, &work);
    *args->loss_sum = cpu_loss_sum(op, args);
    return ERR_OK;
}

static err_code_t cpu_mse_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_loss_t *loss = op->state;
    cpu_mse_work_t work = {
        .target = args->target,
        .elems = op_desc_sample(&op->config.in),
        .dx = cpu_reorder_place(&loss->plain.dx, args, args->dx),
        .factor = (float)(2 * op_loss_scale(args)),
    };
    const void *x;
    err_code_t rc;

    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    rc = cpu_reorder_read(&loss->plain.x, args, args->x, &x, err);
    if (rc != ERR_OK)
        return rc;
    work.x = x;
    simd_team_run(op->config.threads, op->config.in.dims[0],
                  cpu_mse_grain(work.elems), cpu_mse_body_backward, &work);
    return cpu_loss_flush(op, args, work.dx, err);
}

const op_kernel_t cpu_mse_kernel = {
    .open = cpu_loss_open,
    .close = cpu_loss_close,
    .forward = cpu_mse_forward,
    .backward = cpu_mse_backward,
};
