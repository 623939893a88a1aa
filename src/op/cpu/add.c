/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* add in the layout of its inputs, padding included: it is zero and stays so.
 * The gradient of each input is a copy of dy, or dy itself in place; with relu,
 * what it lets through. */
#include <string.h>

#include "op/cpu/combine.h"
#include "op/cpu/cpu.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

typedef struct cpu_add_work {
    int others;
    bool relu;
    const float *in[OP_INPUTS_MAX];
    float *y;
} cpu_add_work_t;

typedef struct cpu_add_pull {
    const float *y, *dy;
    float *to;
} cpu_add_pull_t;

static err_code_t cpu_add_open(op_t *op, err_t *err)
{
    err_code_t code = cpu_combine_open(op, false, err);
    const cpu_combine_t *combine = op->state;

    if (code != ERR_OK)
        return code;
    op->in_place = combine->in[0].direct;
    op->reads_x = false;
    op->reads_y = op->config.relu;
    return ERR_OK;
}

CPU_CLONES
static void cpu_add_pair(const float *a, const float *b, float *y, int64_t n)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

/* The last sum, through relu; NaN passes. */
CPU_CLONES
static void cpu_add_last(const float *a, const float *b, float *y, int64_t n)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float sum = a[i] + b[i];

        y[i] = sum < 0 ? 0 : sum;
    }
}

CPU_CLONES
static void cpu_add_body_pull(void *context, int64_t first, int64_t last)
{
    const cpu_add_pull_t *work = context;
    const float *y = work->y, *dy = work->dy;
    float *to = work->to;

    CPU_INDEPENDENT
    for (int64_t i = first; i < last; i++)
        to[i] = y[i] > 0 ? dy[i] : 0;
}

static void cpu_add_body(void *context, int64_t first, int64_t last)
{
    const cpu_add_work_t *work = context;
    const float *sum = work->in[0];

    for (int k = 1; k <= work->others; k++) {
        if (work->relu && k == work->others)
            cpu_add_last(sum + first, work->in[k] + first, work->y + first,
                         last - first);
        else
            cpu_add_pair(sum + first, work->in[k] + first, work->y + first,
                         last - first);
        sum = work->y;
    }
}

static err_code_t cpu_add_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_add_work_t work = {
        .others = op->config.others, .relu = op->config.relu, .y = args->y};
    err_code_t code = cpu_combine_read(op, args, work.in, err);

    if (code == ERR_OK)
        cpu_team_run(op->config.threads,
                     (int64_t)(op->out.bytes / sizeof(float)),
                     CPU_COMBINE_GRAIN, cpu_add_body, &work);
    return code;
}

static void cpu_add_pull(const op_t *op, const op_args_t *args, float *to)
{
    cpu_add_pull_t work = {.y = args->y, .dy = args->dy, .to = to};

    cpu_team_run(op->config.threads, (int64_t)(op->out.bytes / sizeof(float)),
                 CPU_COMBINE_GRAIN, cpu_add_body_pull, &work);
}

static err_code_t cpu_add_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_combine_t *combine = op->state;
    err_code_t code = ERR_OK;

    /* The first, which may lie over dy, last. */
    for (int k = op->config.others; k >= 0 && code == ERR_OK; k--) {
        cpu_port_t *port = &combine->grad[k];
        void *to = cpu_combine_gradient(op, args, k), *place;

        if (to == NULL || (to == args->dy && !op->config.relu))
            continue;
        place = cpu_port_place(port, args, to);
        if (op->config.relu)
            cpu_add_pull(op, args, place);
        else
            memcpy(place, args->dy, op->out.bytes);
        code = cpu_port_flush(port, &combine->room, args, to, err);
    }
    return code;
}

const op_kernel_t cpu_add_kernel = {
    .open = cpu_add_open,
    .close = cpu_combine_close,
    .forward = cpu_add_forward,
    .backward = cpu_add_backward,
};
