/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy. Forward reads the logits twice: for the maximum and for the
 * sum of exponentials. Backward reads them once, for the gradient. The
 * workspace stores maximum and 1/sum of each row, float [rows,2]. This file
 * handles logits whose classes are adjacent in memory, with the loops of
 * softmax_rows.c. softmax_dense.c handles the other layout, and softmax_soft.c
 * handles both for targets that are probabilities.
 */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/loss.h"
#include "op/cpu/ops/softmax.h"
#include "op/op_loss.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum logits per thread. */
#define CPU_LOSS_GRAIN 4096

/* sum_k w[k] x[k]; if w is NULL, all weights are 1. */
SIMD_CLONES
static double cpu_softmax_mix(const float *x, const float *w, int64_t K)
{
    double lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + SIMD_LANES <= K; k += SIMD_LANES)
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += (double)x[k + j] * (w == NULL ? 1.0 : (double)w[k + j]);
    for (; k < K; k++)
        sum += (double)x[k] * (w == NULL ? 1.0 : (double)w[k]);
    for (int j = 0; j < SIMD_LANES; j++)
        sum += lanes[j];
    return sum;
}

/* Write loss and hit of row [n], given its maximum and sum. */
static void cpu_softmax_finish(const cpu_softmax_work_t *work, int64_t n,
                               float top, float sum)
{
    const int64_t K = work->at.classes, target = work->target[n];
    const float *x = work->x + n * K;
    double mix = 0;

    work->losses[n] = 0;
    work->hits[n] = 0;
    if (cpu_softmax_ignored(work, target))
        return;
    if (work->smooth.spread > 0)
        mix = cpu_softmax_mix(x, work->loss->weights, K);
    work->losses[n] = cpu_softmax_loss(
        work, target, log((double)sum) + (double)top, (double)x[target], mix);
    work->hits[n] = cpu_softmax_hit(x, target, top);
    if (work->kept != NULL) {
        work->kept[2 * n] = top;
        work->kept[2 * n + 1] = 1 / sum;
    }
}

static void cpu_softmax_forward(void *context, int64_t first, int64_t last)
{
    cpu_softmax_rows_forward(context, first, last, cpu_softmax_finish);
}

/* What is subtracted from the gradient of row [n] at its target class. */
static float cpu_softmax_target(const cpu_softmax_work_t *work, int64_t n)
{
    return work->scale * (float)work->smooth.hit *
           cpu_softmax_weight(work, work->target[n]);
}

/* Finish the gradient of row [n]. On entry dx contains the exponentials times
 * their factor. */
static void cpu_softmax_dx(const cpu_softmax_work_t *work, int64_t n)
{
    const int64_t K = work->at.classes, target = work->target[n];
    const float even = work->scale * (float)work->smooth.spread;
    float *dx = work->dx + n * K;

    if (cpu_softmax_ignored(work, target)) {
        memset(dx, 0, (size_t)K * sizeof *dx);
        return;
    }
    for (int64_t k = 0; even != 0 && k < K; k++)
        dx[k] -= even * cpu_softmax_weight(work, k);
    dx[target] -= cpu_softmax_target(work, n);
}

static void cpu_softmax_backward(void *context, int64_t first, int64_t last)
{
    const cpu_softmax_work_t *work = context;
    const float even = work->scale * (float)work->smooth.spread;

    for (int64_t n = first; n < last; n += SIMD_LANES) {
        const int64_t rows = last - n < SIMD_LANES ? last - n : SIMD_LANES;
        float top[SIMD_LANES] = {0}, factor[SIMD_LANES] = {0};

        for (int64_t j = 0; j < rows; j++) {
            if (cpu_softmax_ignored(work, work->target[n + j]))
                continue;
            top[j] = work->kept[2 * (n + j)];
            factor[j] =
                work->kept[2 * (n + j) + 1] * (cpu_softmax_target(work, n + j) +
                                               even * (float)work->smooth.sum);
        }
        cpu_softmax_slopes(work, n, rows, top, factor);
        for (int64_t j = 0; j < rows; j++)
            cpu_softmax_dx(work, n + j);
    }
}

/* ---- calls --------------------------------------------------------------- */

static bool cpu_softmax_soft(const op_t *op)
{
    return op->config.kind == OP_CROSS_ENTROPY_SOFT;
}

/* Thread body: over rows if [inner] is 1, else over blocks of positions. */
static simd_team_body_t *cpu_softmax_body(const op_t *op, int64_t inner,
                                          bool forward)
{
    static simd_team_body_t *const bodies[2][2][2] = {
        {{cpu_softmax_backward, cpu_softmax_blocks_backward},
         {cpu_softmax_forward, cpu_softmax_blocks_forward}},
        {{cpu_softmax_soft_backward, cpu_softmax_soft_blocks_backward},
         {cpu_softmax_soft_forward, cpu_softmax_soft_blocks_forward}},
    };

    return bodies[cpu_softmax_soft(op)][forward][inner > 1];
}

/* Number of items of the parallel loop, which are rows or blocks of positions.
 * cpu_softmax_grain is the minimum number of items per thread. */
static int64_t cpu_softmax_items(const op_classes_t *at)
{
    return at->inner == 1 ? at->rows : cpu_softmax_blocks(at);
}

static int64_t cpu_softmax_grain(const op_classes_t *at)
{
    int64_t logits =
        at->inner == 1 ? at->classes : at->classes * CPU_SOFTMAX_BLOCK;

    return logits >= CPU_LOSS_GRAIN ? 1 : CPU_LOSS_GRAIN / logits;
}

static err_code_t cpu_cross_entropy_open(op_t *op, err_t *err)
{
    op_classes_t at = op_classes_of(&op->config);

    if (op->config.training)
        op->workspace_bytes = 2 * (size_t)at.rows * sizeof(float);
    return cpu_loss_open_items(op, cpu_softmax_items(&at), err);
}

/* Fill [work] for forward or backward, and convert x to plain layout. */
static err_code_t cpu_softmax_begin(op_t *op, const op_args_t *args,
                                    cpu_softmax_work_t *work, err_t *err)
{
    cpu_loss_t *loss = op->state;
    const void *x;
    err_code_t rc = cpu_reorder_read(&loss->plain.x, args, args->x, &x, err);

    *work = (cpu_softmax_work_t){.x = x,
                                 .at = op_classes_of(&op->config),
                                 .smooth = op_smooth_of(&op->config),
                                 .loss = &op->config.loss,
                                 .kept = op->config.training ? args->workspace
                                                             : NULL,
                                 .losses = cpu_loss_items(op, args)};
    work->hits = (uint8_t *)(work->losses + loss->items);
    if (cpu_softmax_soft(op))
        work->soft = args->target;
    else
        work->target = args->target;
    return rc;
}

static err_code_t cpu_cross_entropy_forward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    const cpu_loss_t *loss = op->state;
    cpu_softmax_work_t work;
    int64_t correct = 0;
    err_code_t rc = cpu_softmax_soft(op)
                        ? ERR_OK
                        : op_check_target(&op->config, args->target, err);

    if (rc == ERR_OK)
        rc = cpu_softmax_begin(op, args, &work, err);
    if (rc != ERR_OK)
        return rc;
    simd_team_run(op->config.threads, loss->items, cpu_softmax_grain(&work.at),
                  cpu_softmax_body(op, work.at.inner, true), &work);
    for (int64_t i = 0; i < loss->items; i++)
        correct += work.hits[i];
    *args->loss_sum = cpu_loss_sum(op, args);
    *args->correct = (double)correct;
    return ERR_OK;
}

static err_code_t cpu_cross_entropy_backward(op_t *op, const op_args_t *args,
                                             err_t *err)
{
    cpu_loss_t *loss = op->state;
    cpu_softmax_work_t work;
    err_code_t rc;

    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    rc = cpu_softmax_begin(op, args, &work, err);
    if (rc != ERR_OK)
        return rc;
    work.scale = (float)op_loss_scale(args);
    work.dx = cpu_reorder_place(&loss->plain.dx, args, args->dx);
    simd_team_run(op->config.threads, loss->items, cpu_softmax_grain(&work.at),
                  cpu_softmax_body(op, work.at.inner, false), &work);
    return cpu_loss_flush(op, args, work.dx, err);
}

const op_kernel_t cpu_cross_entropy_kernel = {
    .open = cpu_cross_entropy_open,
    .close = cpu_loss_close,
    .forward = cpu_cross_entropy_forward,
    .backward = cpu_cross_entropy_backward,
};
