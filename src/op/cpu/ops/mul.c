/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mul in the layout of its inputs, padding included: it is 0 and stays 0. */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "simd/team.h"
#include "simd/vector.h"

/* y = product of the factors. */
typedef struct cpu_mul_work {
    int factors;
    const float *factor[OP_INPUTS_MAX];
    float *y;
} cpu_mul_work_t;

static err_code_t cpu_mul_open(op_t *op, err_t *err)
{
    return cpu_combine_open(op, false, err);
}

SIMD_CLONES
static void cpu_mul_pair(const float *a, const float *b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void cpu_mul_body(void *context, int64_t first, int64_t last)
{
    const cpu_mul_work_t *work = context;
    const float *product = work->factor[0];

    for (int k = 1; k < work->factors; k++) {
        cpu_mul_pair(product + first, work->factor[k] + first, work->y + first,
                     last - first);
        product = work->y;
    }
}

static void cpu_mul_run(op_t *op, cpu_mul_work_t *work)
{
    simd_team_run(op->config.threads, (int64_t)(op->out.bytes / sizeof(float)),
                  CPU_COMBINE_GRAIN, cpu_mul_body, work);
}

static err_code_t cpu_mul_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_mul_work_t work = {.factors = op->config.others + 1, .y = args->y};
    err_code_t rc = cpu_combine_read(op, args, work.factor, err);

    if (rc == ERR_OK)
        cpu_mul_run(op, &work);
    return rc;
}

/* Compute the gradient of input [k]: dy times all other inputs. */
static err_code_t cpu_mul_gradient(op_t *op, const op_args_t *args, int k,
                                   const float *const *inputs, err_t *err)
{
    cpu_mul_work_t work = {.factors = 1,
                           .factor = {args->dy},
                           .y = cpu_combine_place(op, args, k)};

    if (work.y == NULL)
        return ERR_OK;
    for (int i = 0; i <= op->config.others; i++)
        if (i != k)
            work.factor[work.factors++] = inputs[i];
    cpu_mul_run(op, &work);
    return cpu_combine_flush(op, args, k, err);
}

static err_code_t cpu_mul_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *inputs[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, inputs, err);

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        rc = cpu_mul_gradient(op, args, k, inputs, err);
    return rc;
}

const op_kernel_t cpu_mul_kernel = {
    .open = cpu_mul_open,
    .close = cpu_combine_close,
    .forward = cpu_mul_forward,
    .backward = cpu_mul_backward,
};
