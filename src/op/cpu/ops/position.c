/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* position on a plain x. The elements of a sample are divided among threads. */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/rows.h"
#include "op/op_desc.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct cpu_position {
    int64_t samples, elems; /* elements of a sample */
    const float *from, *w;
    float *to;
} cpu_position_t;

SIMD_CLONES
static void forward_body(void *context, int64_t first, int64_t last)
{
    const cpu_position_t *work = context;

    for (int64_t n = 0; n < work->samples; n++) {
        const float *x = work->from + n * work->elems, *w = work->w;
        float *y = work->to + n * work->elems;

        SIMD_INDEPENDENT
        for (int64_t i = first; i < last; i++)
            y[i] = x[i] + w[i];
    }
}

/* Divide the elements of a sample among threads. */
static void position_run(const op_t *op, simd_team_body_t *body, void *work)
{
    simd_team_run(op->config.threads, op_desc_sample(&op->config.in),
                  1 + CPU_COMBINE_GRAIN / op->config.in.dims[0], body, work);
}

static err_code_t cpu_position_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    cpu_position_t work = {.samples = op->config.in.dims[0],
                           .elems = op_desc_sample(&op->config.in),
                           .w = args->params[0],
                           .to = args->y};
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.from = x[0];
    position_run(op, forward_body, &work);
    return ERR_OK;
}

static err_code_t cpu_position_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    cpu_column_sums_t dw = {.from = args->dy,
                            .to = args->dparams[0],
                            .rows = op->config.in.dims[0],
                            .columns = op_desc_sample(&op->config.in)};

    position_run(op, cpu_column_sums_body, &dw);
    if (!op->config.need_dx || args->dx == args->dy)
        return ERR_OK;
    memcpy(cpu_combine_place(op, args, 0), args->dy, op->out.bytes);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_position_kernel = {
    .open = cpu_combine_open_over,
    .close = cpu_combine_close,
    .forward = cpu_position_forward,
    .backward = cpu_position_backward,
};
