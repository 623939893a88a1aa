/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * All activations except relu. The loops (activations.h) run on whatever
 * layout x has, padding included: most activations map 0 to 0, so the padding
 * stays 0. sigmoid and softplus do not and therefore work on plain tensors.
 * oneDNN's activations are not used: they lose NaN, and their backward needs x
 * where y would do.
 */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/activations.h"
#include "op/cpu/vector/chunk.h"
#include "simd/team.h"

/* Minimum elements per thread. */
#define CPU_ACTIVATION_GRAIN 4096

typedef struct cpu_activation_work {
    cpu_activation_t activation;
    const void *x;  /* forward: x; backward: x or y */
    const void *dy; /* NULL in forward */
    void *to;
    bool bf16; /* x, dy and to are stored as bfloat16 */
} cpu_activation_work_t;

static err_code_t activation_op_open(op_t *op, err_t *err)
{
    const cpu_activation_loops_t *loops =
        cpu_activation_of(op->config.kind, op->config.alpha).loops;

    op->reads_y = loops->of_y;
    op->reads_x = !loops->of_y;
    op->in_place =
        loops->of_y && (!loops->fills || op->config.in.layout == NULL);
    return cpu_combine_open(op, loops->fills, err);
}

static void cpu_activation_body(void *context, int64_t first, int64_t last)
{
    const cpu_activation_work_t *work = context;
    const bool bf16 = work->bf16;
    float x[CPU_CHUNK], dy[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        const float *of;
        float *to;

        n = cpu_chunk_count(i, last, bf16);
        of = cpu_chunk_read(work->x, i, n, bf16, x);
        to = cpu_chunk_place(work->to, i, bf16, x);
        if (work->dy == NULL)
            cpu_activation_forward(work->activation, of, to, n);
        else
            cpu_activation_backward(work->activation, of,
                                    cpu_chunk_read(work->dy, i, n, bf16, dy),
                                    to, n);
        cpu_chunk_flush(work->to, i, n, bf16, x);
    }
}

static void cpu_activation_run(const op_t *op, cpu_activation_work_t *work)
{
    work->activation = cpu_activation_of(op->config.kind, op->config.alpha);
    work->bf16 = op_stored_bf16(&op->out);
    simd_team_run(op->config.threads, (int64_t)op_desc_stored_elems(&op->out),
                  CPU_ACTIVATION_GRAIN, cpu_activation_body, work);
}

static err_code_t activation_op_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    cpu_activation_work_t work = {.to = args->y};
    const void *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_convert(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    cpu_activation_run(op, &work);
    return ERR_OK;
}

static err_code_t activation_op_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_activation_work_t work = {.dy = args->dy};
    const void *x[OP_INPUTS_MAX] = {args->y};
    err_code_t rc = ERR_OK;

    if (!op->config.need_dx)
        return ERR_OK;
    if (op->reads_x)
        rc = cpu_combine_convert(op, args, x, err);
    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.to = cpu_combine_place(op, args, 0);
    cpu_activation_run(op, &work);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_activation_kernel = {
    .open = activation_op_open,
    .close = cpu_combine_close,
    .forward = activation_op_forward,
    .backward = activation_op_backward,
};
