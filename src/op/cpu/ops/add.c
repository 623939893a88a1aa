/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* add in the layout of its inputs, padding included: it is 0 and stays 0. The
 * gradient of each input is dy: copied, or the buffer of dy itself. With relu,
 * it is dy where y is positive, else 0. */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/ops/relu.h"
#include "op/cpu/vector/chunk.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct cpu_add_work {
    int others;
    bool relu, bf16;
    const void *in[OP_INPUTS_MAX];
    void *y;
} cpu_add_work_t;

static err_code_t cpu_add_open(op_t *op, err_t *err)
{
    err_code_t rc = cpu_combine_open(op, false, err);
    const cpu_combine_t *combine = op->state;

    if (rc != ERR_OK)
        return rc;
    op->in_place = combine->in[0].direct;
    op->reads_x = false;
    op->reads_y = op->config.relu;
    op->passes_dy = !op->config.relu;
    for (int k = 0; k <= op->config.others; k++)
        op->passes_dy = op->passes_dy && combine->grad[k].direct;
    return ERR_OK;
}

SIMD_CLONES
static void cpu_add_pair(const float *a, const float *b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

/* The last sum, followed by relu; NaN stays NaN. */
SIMD_CLONES
static void cpu_add_last(const float *a, const float *b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float sum = a[i] + b[i];

        y[i] = sum < 0 ? 0 : sum;
    }
}

static void cpu_add_body(void *context, int64_t first, int64_t last)
{
    const cpu_add_work_t *work = context;
    float a[CPU_CHUNK], b[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        const float *sum;
        float *y;

        n = cpu_chunk_count(i, last, work->bf16);
        sum = cpu_chunk_read(work->in[0], i, n, work->bf16, a);
        y = cpu_chunk_place(work->y, i, work->bf16, a);
        for (int k = 1; k <= work->others; k++) {
            const float *term =
                cpu_chunk_read(work->in[k], i, n, work->bf16, b);

            if (work->relu && k == work->others)
                cpu_add_last(sum, term, y, n);
            else
                cpu_add_pair(sum, term, y, n);
            sum = y;
        }
        cpu_chunk_flush(work->y, i, n, work->bf16, a);
    }
}

static err_code_t cpu_add_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_add_work_t work = {.others = op->config.others,
                           .relu = op->config.relu,
                           .bf16 = op_stored_bf16(&op->out),
                           .y = args->y};
    err_code_t rc = cpu_combine_convert(op, args, work.in, err);

    if (rc == ERR_OK)
        simd_team_run(op->config.threads,
                      (int64_t)op_desc_stored_elems(&op->out),
                      CPU_COMBINE_GRAIN, cpu_add_body, &work);
    return rc;
}

static err_code_t cpu_add_backward(op_t *op, const op_args_t *args, err_t *err)
{
    err_code_t rc = ERR_OK;

    /* Input 0 comes last: its gradient may overwrite dy. */
    for (int k = op->config.others; k >= 0 && rc == ERR_OK; k--) {
        void *to = cpu_combine_place(op, args, k);

        if (to == NULL ||
            (cpu_combine_gradient(op, args, k) == args->dy && !op->config.relu))
            continue;
        if (op->config.relu)
            cpu_relu_gradient(op, args, to);
        else
            memcpy(to, args->dy, op->out.bytes);
        rc = cpu_combine_flush(op, args, k, err);
    }
    return rc;
}

const op_kernel_t cpu_add_kernel = {
    .open = cpu_add_open,
    .close = cpu_combine_close,
    .forward = cpu_add_forward,
    .backward = cpu_add_backward,
};
