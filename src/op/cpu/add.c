/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* add in the layout of its inputs, padding included: it is zero and stays so.
 * The gradient of each input is a copy of dy, or dy itself in place. */
#include <string.h>

#include "op/cpu/combine.h"
#include "op/cpu/cpu.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

typedef struct cpu_add_work {
    int others;
    const float *in[OP_INPUTS_MAX];
    float *y;
} cpu_add_work_t;

static err_code_t cpu_add_open(op_t *op, err_t *err)
{
    err_code_t code = cpu_combine_open(op, false, err);
    const cpu_combine_t *combine = op->state;

    if (code != ERR_OK)
        return code;
    op->in_place = combine->in[0].direct;
    op->reads_x = false;
    return ERR_OK;
}

CPU_CLONES
static void cpu_add_pair(const float *a, const float *b, float *y, int64_t n)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void cpu_add_body(void *context, int64_t first, int64_t last)
{
    const cpu_add_work_t *work = context;
    const float *sum = work->in[0];

    for (int k = 1; k <= work->others; k++) {
        cpu_add_pair(sum + first, work->in[k] + first, work->y + first,
                     last - first);
        sum = work->y;
    }
}

static err_code_t cpu_add_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_add_work_t work = {.others = op->config.others, .y = args->y};
    err_code_t code = cpu_combine_read(op, args, work.in, err);

    if (code == ERR_OK)
        cpu_team_run(op->config.threads,
                     (int64_t)(op->out.bytes / sizeof(float)),
                     CPU_COMBINE_GRAIN, cpu_add_body, &work);
    return code;
}

static err_code_t cpu_add_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_combine_t *combine = op->state;
    err_code_t code = ERR_OK;

    for (int k = 0; k <= op->config.others && code == ERR_OK; k++) {
        cpu_port_t *port = &combine->grad[k];
        void *to = cpu_combine_gradient(op, args, k), *place;

        if (to == NULL || to == args->dy)
            continue;
        place = cpu_port_place(port, args, to);
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
