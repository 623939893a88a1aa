/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: three products of plain matrices, turned as they are stored, so that
 * nothing is reordered:
 *   y [N,O] = x [N,F] w' + b,   dx [N,F] = dy w,   dw [O,F] = dy' x
 * and db, the column sums of dy. With an activation, y is that of the product,
 * which is kept; its slope meets dy in the pass that sums db. oneDNN's inner
 * product would do the same, but it is up to three times slower on plain w, and
 * allocates in each call; large products are our own (product.h).
 */
#include "op/cpu/ops/linear.h"

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/product.h"

typedef struct cpu_linear {
    cpu_scratch_t room;
    cpu_plain_t plain;
    cpu_product_t forward, data, weights;
    size_t dh_at; /* in scratch: the gradient of what the activation is of */
} cpu_linear_t;

static err_code_t cpu_linear_open_products(op_t *op, err_t *err)
{
    cpu_linear_t *linear = op->state;
    cpu_scratch_t *room = &linear->room;
    const cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    const int64_t N = y.M, O = y.N, F = y.K;
    const cpu_matmul_spec_t dw = {.M = O, .N = F, .K = N, .a_turned = true};
    const cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O};
    err_code_t code;

    if (op->config.training && op->config.activation != OP_LINEAR) {
        op->workspace_bytes = (size_t)(N * O) * sizeof(float);
        linear->dh_at = cpu_scratch_take(room, op->workspace_bytes);
        cpu_scratch_keep(room);
    }
    code = cpu_product_open(&linear->forward, room, op, &y, err);
    cpu_scratch_restart(room);
    if (code == ERR_OK && op->config.training)
        code = cpu_product_open(&linear->weights, room, op, &dw, err);
    cpu_scratch_restart(room);
    if (code == ERR_OK && op->config.training && op->config.need_dx)
        code = cpu_product_open(&linear->data, room, op, &dx, err);
    return code;
}

static err_code_t cpu_linear_open(op_t *op, err_t *err)
{
    cpu_linear_t *linear;
    err_code_t code;

    if (op->config.bf16) {
        op->kernel = &cpu_linear_bf16_kernel;
        return op->kernel->open(op, err);
    }
    code = mem_alloc(sizeof *linear, "a linear op", &op->state, err);
    if (code != ERR_OK)
        return code;
    linear = op->state;
    code = cpu_engine_open(&linear->room.engine, err);
    if (code == ERR_OK)
        code = cpu_plain_open(&linear->plain, &linear->room, op, err);
    if (code == ERR_OK)
        code = cpu_linear_open_products(op, err);
    if (code == ERR_OK)
        cpu_scratch_finish(&linear->room, op);
    return code;
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
    cpu_engine_close(&linear->room.engine);
    mem_free(linear);
}

static err_code_t cpu_linear_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool activated = op->config.activation != OP_LINEAR;
    float *h = activated && op->config.training ? args->workspace : args->y;
    const void *x;
    err_code_t code = cpu_reorder_read(&linear->plain.x, &linear->room, args,
                                       args->x, &x, err);

    if (code != ERR_OK)
        return code;
    code = cpu_product_run(
        &linear->forward, &linear->room, op, args,
        (cpu_factors_t){x, args->params[0], args->params[1], h}, err);
    if (code == ERR_OK && activated)
        cpu_linear_activate(op, args, h);
    return code;
}

/* ---- float32 ------------------------------------------------------------- */

static err_code_t cpu_linear_run_weights(op_t *op, const op_args_t *args,
                                         const void *dy, err_t *err)
{
    cpu_linear_t *linear = op->state;
    const void *x;
    err_code_t code = cpu_reorder_read(&linear->plain.x, &linear->room, args,
                                       args->x, &x, err);

    if (code != ERR_OK)
        return code;
    return cpu_product_run(&linear->weights, &linear->room, op, args,
                           (cpu_factors_t){dy, x, NULL, args->dparams[0]}, err);
}

static err_code_t cpu_linear_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool activated = op->config.activation != OP_LINEAR;
    float *dh =
        activated ? (float *)((char *)args->scratch + linear->dh_at) : NULL;
    const void *dy = activated ? dh : args->dy;
    err_code_t code;

    if (activated || op->config.bias)
        cpu_linear_pass_dy(op, args, args->workspace, dh, NULL);
    code = cpu_linear_run_weights(op, args, dy, err);
    if (code != ERR_OK || !op->config.need_dx)
        return code;
    code = cpu_product_run(
        &linear->data, &linear->room, op, args,
        (cpu_factors_t){dy, args->params[0], NULL,
                        cpu_reorder_place(&linear->plain.dx, args, args->dx)},
        err);
    if (code == ERR_OK)
        code = cpu_reorder_flush(&linear->plain.dx, &linear->room, args,
                                 args->dx, err);
    return code;
}

const op_kernel_t cpu_linear_kernel = {
    .open = cpu_linear_open,
    .close = cpu_linear_close,
    .forward = cpu_linear_forward,
    .backward = cpu_linear_backward,
};
