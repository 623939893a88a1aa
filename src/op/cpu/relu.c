/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * relu in whatever layout x has, padding included: elements are independent,
 * and the padding is zero and stays zero. Own loops, because oneDNN's relu
 * turns NaN into 0 and so would hide that a run diverges.
 */
#include "op/cpu/cpu.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

/* Elements that are worth a thread. */
#define CPU_RELU_GRAIN 16384

typedef struct cpu_relu_work {
    const float *x, *y, *dy;
    float *to;
} cpu_relu_work_t;

static err_code_t cpu_relu_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = true;
    op->out.layout = op->config.in.layout;
    op->out.bytes = op->config.in.bytes;
    return ERR_OK;
}

CPU_CLONES
static void cpu_relu_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_relu_work_t *work = context;
    const float *x = work->x;
    float *y = work->to;

    for (int64_t i = first; i < last; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

CPU_CLONES
static void cpu_relu_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_relu_work_t *work = context;
    const float *y = work->y, *dy = work->dy;
    float *dx = work->to;

    for (int64_t i = first; i < last; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

static err_code_t cpu_relu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_relu_work_t work = {.x = args->x, .to = args->y};

    (void)err;
    cpu_team_run(op->config.threads, (int64_t)(op->out.bytes / sizeof(float)),
                 CPU_RELU_GRAIN, cpu_relu_body_forward, &work);
    return ERR_OK;
}

static err_code_t cpu_relu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_relu_work_t work = {.y = args->y, .dy = args->dy, .to = args->dx};

    (void)err;
    if (op->config.need_dx)
        cpu_team_run(op->config.threads,
                     (int64_t)(op->out.bytes / sizeof(float)), CPU_RELU_GRAIN,
                     cpu_relu_body_backward, &work);
    return ERR_OK;
}

const op_kernel_t cpu_relu_kernel = {
    .open = cpu_relu_open,
    .forward = cpu_relu_forward,
    .backward = cpu_relu_backward,
};
