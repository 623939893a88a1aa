/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy: a pass over the logits for the maximum, one for the sum of
 * exponentials, and in the backward one for the gradient. The workspace keeps
 * maximum and 1/sum of each row, float [N,2]. Sums run over CPU_LANES partial
 * sums, which the compiler keeps in a vector.
 */
#include "op/cpu/cpu.h"
#include "op/cpu/loss.h"
#include "op/cpu/math.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

/* Logits that are worth a thread. */
#define CPU_LOSS_GRAIN 4096

typedef struct cpu_softmax_work {
    const float *x;
    const int64_t *target;
    int64_t K;
    float *kept;    /* [N,2], NULL in evaluation */
    double *losses; /* [N] */
    uint8_t *hits;  /* [N] */
    float *dx;
    float scale;
} cpu_softmax_work_t;

CPU_CLONES
static float cpu_softmax_top(const float *x, int64_t K)
{
    float lanes[CPU_LANES], top = x[0];
    int64_t k = 0;

    for (int j = 0; j < CPU_LANES; j++)
        lanes[j] = top;
    for (; k + CPU_LANES <= K; k += CPU_LANES)
        for (int j = 0; j < CPU_LANES; j++)
            lanes[j] = x[k + j] > lanes[j] ? x[k + j] : lanes[j];
    for (; k < K; k++)
        top = x[k] > top ? x[k] : top;
    for (int j = 0; j < CPU_LANES; j++)
        top = lanes[j] > top ? lanes[j] : top;
    return top;
}

/* sum_k exp(x[k] - top) */
CPU_CLONES
static float cpu_softmax_sum(const float *x, int64_t K, float top)
{
    float lanes[CPU_LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + CPU_LANES <= K; k += CPU_LANES) {
        float powers[CPU_LANES];

        for (int j = 0; j < CPU_LANES; j++)
            powers[j] = cpu_math_exp(x[k + j] - top);
        for (int j = 0; j < CPU_LANES; j++)
            lanes[j] += powers[j];
    }
    for (; k < K; k++)
        sum += cpu_math_exp(x[k] - top);
    for (int j = 0; j < CPU_LANES; j++)
        sum += lanes[j];
    return sum;
}

/* Is [target] the first of the largest logits? */
static bool cpu_softmax_hit(const float *x, int64_t target, float top)
{
    if (!(x[target] >= top))
        return false;
    for (int64_t k = 0; k < target; k++)
        if (x[k] >= top)
            return false;
    return true;
}

static void cpu_softmax_forward(void *context, int64_t first, int64_t last)
{
    const cpu_softmax_work_t *work = context;

    for (int64_t n = first; n < last; n++) {
        const float *x = work->x + n * work->K;
        float top = cpu_softmax_top(x, work->K);
        float sum = cpu_softmax_sum(x, work->K, top);

        work->losses[n] =
            log((double)sum) + (double)top - (double)x[work->target[n]];
        work->hits[n] = cpu_softmax_hit(x, work->target[n], top);
        if (work->kept != NULL) {
            work->kept[2 * n] = top;
            work->kept[2 * n + 1] = 1 / sum;
        }
    }
}

CPU_CLONES
static void cpu_softmax_backward(void *context, int64_t first, int64_t last)
{
    const cpu_softmax_work_t *work = context;

    for (int64_t n = first; n < last; n++) {
        const float *x = work->x + n * work->K;
        float *dx = work->dx + n * work->K;
        float top = work->kept[2 * n];
        float factor = work->kept[2 * n + 1] * work->scale;

        for (int64_t k = 0; k < work->K; k++)
            dx[k] = cpu_math_exp(x[k] - top) * factor;
        dx[work->target[n]] -= work->scale;
    }
}

/* Rows that are worth a thread. */
static int64_t cpu_softmax_grain(int64_t K)
{
    return K >= CPU_LOSS_GRAIN ? 1 : CPU_LOSS_GRAIN / K;
}

static err_code_t cpu_cross_entropy_open(op_t *op, err_t *err)
{
    if (op->config.training)
        op->workspace_bytes = 2 * (size_t)op->config.in.dims[0] * sizeof(float);
    return cpu_loss_open(op, err);
}

static err_code_t cpu_cross_entropy_forward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    cpu_loss_t *loss = op->state;
    int64_t N = op->config.in.dims[0], correct = 0;
    cpu_softmax_work_t work = {
        .target = args->target,
        .K = op->config.in.dims[1],
        .kept = op->config.training ? args->workspace : NULL,
        .losses = cpu_loss_samples(op, args),
    };
    const void *x;
    err_code_t code = op_check_target(op, args, err);

    if (code == ERR_OK)
        code =
            cpu_port_read(&loss->plain.x, &loss->room, args, args->x, &x, err);
    if (code != ERR_OK)
        return code;
    work.x = x;
    work.hits = (uint8_t *)(work.losses + N);
    cpu_team_run(op->config.threads, N, cpu_softmax_grain(work.K),
                 cpu_softmax_forward, &work);
    for (int64_t n = 0; n < N; n++)
        correct += work.hits[n];
    *args->loss_sum = cpu_loss_sum(op, args);
    *args->correct = correct;
    return ERR_OK;
}

static err_code_t cpu_cross_entropy_backward(op_t *op, const op_args_t *args,
                                             err_t *err)
{
    cpu_loss_t *loss = op->state;
    cpu_softmax_work_t work = {
        .target = args->target,
        .K = op->config.in.dims[1],
        .kept = args->workspace,
        .dx = cpu_port_place(&loss->plain.dx, args, args->dx),
        .scale = (float)args->scale,
    };
    const void *x;
    err_code_t code;

    if (!op->config.need_dx)
        return ERR_OK;
    code = cpu_port_read(&loss->plain.x, &loss->room, args, args->x, &x, err);
    if (code != ERR_OK)
        return code;
    work.x = x;
    cpu_team_run(op->config.threads, op->config.in.dims[0],
                 cpu_softmax_grain(work.K), cpu_softmax_backward, &work);
    return cpu_port_flush(&loss->plain.dx, &loss->room, args, args->dx, err);
}

const op_kernel_t cpu_cross_entropy_kernel = {
    .open = cpu_cross_entropy_open,
    .close = cpu_loss_close,
    .forward = cpu_cross_entropy_forward,
    .backward = cpu_cross_entropy_backward,
};
