/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: three products of plain matrices, which are read transposed where
 * needed, so that nothing is reordered:
 *   y [N,O] = x [N,F] w' + b,   dx [N,F] = dy w,   dw [O,F] = dy' x
 * and db, the column sums of dy. With an activation, the result of the forward
 * product is stored for backward. One pass then multiplies dy by the
 * derivative of the activation and sums db. oneDNN's inner product would do
 * the same, but it is up to three times slower on plain w, and allocates
 * memory in each call. Large products use our own code (product.h).
 */
#include "op/cpu/ops/linear.h"

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/product.h"

typedef struct cpu_linear {
    cpu_scratch_t scratch;
    cpu_plain_t plain;
    cpu_product_t forward, data, weights;
    size_t dh_at; /* offset in scratch: gradient of the activation's input */
} cpu_linear_t;

static err_code_t cpu_linear_open_products(op_t *op, err_t *err)
{
    cpu_linear_t *linear = op->state;
    cpu_scratch_t *scratch = &linear->scratch;
    const cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    const int64_t N = y.M, O = y.N, F = y.K;
    const cpu_matmul_spec_t dw = {.M = O, .N = F, .K = N, .a_transposed = true};
    const cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O};
    err_code_t rc;

    if (op->config.training && op->config.activation != OP_NONE) {
        op->workspace_bytes = (size_t)(N * O) * sizeof(float);
        linear->dh_at = cpu_scratch_take(scratch, op->workspace_bytes);
        cpu_scratch_keep(scratch);
    }
    rc = cpu_product_open(&linear->forward, scratch, op, &y, err);
    cpu_scratch_restart(scratch);
    if (rc == ERR_OK && op->config.training)
        rc = cpu_product_open(&linear->weights, scratch, op, &dw, err);
    cpu_scratch_restart(scratch);
    if (rc == ERR_OK && op->config.training && op->config.need_dx)
        rc = cpu_product_open(&linear->data, scratch, op, &dx, err);
    return rc;
}

static err_code_t cpu_linear_open(op_t *op, err_t *err)
{
    cpu_linear_t *linear;
    err_code_t rc;

    if (op_computes_bf16(&op->config)) {
        op->kernel = &cpu_linear_bf16_kernel;
        return op->kernel->open(op, err);
    }
    rc = mem_new(cpu_linear_t, 1, "a linear op", &linear, err);
    if (rc != ERR_OK)
        return rc;
    op->state = linear;
    rc = cpu_engine_open(&linear->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_plain_open(&linear->plain, &linear->scratch, op, err);
    if (rc == ERR_OK)
        rc = cpu_linear_open_products(op, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&linear->scratch, op);
    return rc;
}

static void cpu_linear_close(op_t *op)
{
    cpu_linear_t *linear = op->state;

    if (linear == NULL)
        return;
    cpu_product_close(&linear->forward);
    cpu_product_close(&linear->data);
    cpu_product_close(&linear->weights);
    cpu_plain_close(&linear->plain);
    cpu_engine_close(&linear->scratch.engine);
    mem_free(linear);
}

static err_code_t cpu_linear_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool activated = op->config.activation != OP_NONE;
    float *h = activated && op->config.training ? args->workspace : args->y;
    const void *x;
    err_code_t rc = cpu_reorder_read(&linear->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    rc = cpu_product_run(
        &linear->forward, op, args,
        (cpu_factors_t){x, args->params[0], args->params[1], h}, err);
    if (rc == ERR_OK && activated)
        cpu_linear_activate(op, args, h);
    return rc;
}

/* ---- backward ------------------------------------------------------------ */

static err_code_t cpu_linear_run_weights(op_t *op, const op_args_t *args,
                                         const void *dy, err_t *err)
{
    cpu_linear_t *linear = op->state;
    const void *x;
    err_code_t rc = cpu_reorder_read(&linear->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    return cpu_product_run(&linear->weights, op, args,
                           (cpu_factors_t){dy, x, NULL, args->dparams[0]}, err);
}

static err_code_t cpu_linear_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool activated = op->config.activation != OP_NONE;
    float *dh =
        activated ? (float *)((char *)args->scratch + linear->dh_at) : NULL;
    const void *dy = activated ? dh : args->dy;
    err_code_t rc;

    if (activated || op->config.bias)
        cpu_linear_pass_dy(op, args, args->workspace, dh, NULL);
    rc = cpu_linear_run_weights(op, args, dy, err);
    if (rc != ERR_OK || !op->config.need_dx)
        return rc;
    rc = cpu_product_run(
        &linear->data, op, args,
        (cpu_factors_t){dy, args->params[0], NULL,
                        cpu_reorder_place(&linear->plain.dx, args, args->dx)},
        err);
    if (rc == ERR_OK)
        rc = cpu_reorder_flush(&linear->plain.dx, args, args->dx, err);
    return rc;
}

const op_kernel_t cpu_linear_kernel = {
    .open = cpu_linear_open,
    .close = cpu_linear_close,
    .forward = cpu_linear_forward,
    .backward = cpu_linear_backward,
};
