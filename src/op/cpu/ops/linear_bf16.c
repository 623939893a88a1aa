/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear with products in bfloat16. x, w and dy are rounded into buffers of
 * unchanged layout; oneDNN multiplies these and sums in float32. Forward
 * leaves the rounded x and w in the workspace for backward: x itself need not
 * be stored (half of the memory), and w is rounded once a step. An x that is
 * already bfloat16 is used directly, in backward, too. The bias and its
 * gradient are float32. dy is rounded in the pass that sums the gradient of
 * the bias.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/linear.h"

typedef struct cpu_linear_bf16 {
    cpu_scratch_t scratch;
    cpu_plain_t plain;
    cpu_prim_t forward, data, weights;
    cpu_reorder_t x, w, dy; /* from float32 to bfloat16 */
    size_t w_at, h_at;      /* offsets of w and h in the workspace, after x */
    size_t h_scratch_at;    /* evaluation: offset of h in scratch */
} cpu_linear_bf16_t;

/* Is x plain and stored as bfloat16? Then no rounded copy is made. */
static bool takes_rounded(const op_t *op)
{
    return op->config.in.layout == NULL && op_stored_bf16(&op->config.in);
}

/* Open the reorder of a plain matrix from float32 to bfloat16. */
static err_code_t linear_open_reorder(cpu_reorder_t *reorder,
                                      cpu_scratch_t *scratch, int64_t rows,
                                      int64_t columns, err_t *err)
{
    const int64_t dims[] = {rows, columns};
    cpu_md_t from, to;
    err_code_t rc = cpu_md_plain(&from, &scratch->engine,
                                 (cpu_shape_t){2, dims, false}, err);

    if (rc == ERR_OK)
        rc = cpu_md_plain(&to, &scratch->engine, (cpu_shape_t){2, dims, true},
                          err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(reorder, scratch, &from, &to, err);
    return rc;
}

static err_code_t
linear_bf16_open_backward(op_t *op, const cpu_matmul_spec_t *y, err_t *err)
{
    cpu_linear_bf16_t *linear = op->state;
    const int64_t N = y->M, O = y->N, F = y->K;
    cpu_engine_t *engine = &linear->scratch.engine;
    cpu_matmul_spec_t dw = {
        .M = O, .N = F, .K = N, .a_transposed = true, .bf16 = true};
    cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O, .bf16 = true};
    err_code_t rc = cpu_prim_matmul(&linear->weights, engine, &dw, err);

    if (rc == ERR_OK && op->config.need_dx)
        rc = cpu_prim_matmul(&linear->data, engine, &dx, err);
    if (rc == ERR_OK)
        rc = linear_open_reorder(&linear->dy, &linear->scratch, N, O, err);
    if (!takes_rounded(op))
        linear->w_at = mem_round(sizeof(uint16_t) * (size_t)(N * F));
    linear->h_at = linear->w_at;
    if (op->config.need_dx)
        linear->h_at += mem_round(sizeof(uint16_t) * (size_t)(O * F));
    op->workspace_bytes = linear->h_at;
    if (op->config.activation != OP_NONE)
        op->workspace_bytes += sizeof(float) * (size_t)(N * O);
    op->reads_x = takes_rounded(op);
    return rc;
}

static err_code_t linear_bf16_open(op_t *op, err_t *err)
{
    cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    cpu_linear_bf16_t *linear;
    err_code_t rc = mem_new(cpu_linear_bf16_t, 1, "a linear op", &linear, err);

    if (rc != ERR_OK)
        return rc;
    op->state = linear;
    y.bf16 = true;
    rc = cpu_engine_open(&linear->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_plain_open(&linear->plain, &linear->scratch, op, err);
    if (rc == ERR_OK)
        rc =
            cpu_prim_matmul(&linear->forward, &linear->scratch.engine, &y, err);
    if (rc == ERR_OK && !takes_rounded(op))
        rc = linear_open_reorder(&linear->x, &linear->scratch, y.M, y.K, err);
    if (rc == ERR_OK)
        rc = linear_open_reorder(&linear->w, &linear->scratch, y.N, y.K, err);
    if (rc == ERR_OK && op->config.training)
        rc = linear_bf16_open_backward(op, &y, err);
    if (op->config.activation != OP_NONE && !op->config.training)
        linear->h_scratch_at = cpu_scratch_take(
            &linear->scratch, sizeof(float) * (size_t)(y.M * y.N));
    if (rc == ERR_OK)
        cpu_scratch_finish(&linear->scratch, op);
    return rc;
}

static void linear_bf16_close(op_t *op)
{
    cpu_linear_bf16_t *linear = op->state;

    if (linear == NULL)
        return;
    cpu_reorder_close(&linear->x);
    cpu_reorder_close(&linear->w);
    cpu_reorder_close(&linear->dy);
    cpu_prim_close(&linear->forward);
    cpu_prim_close(&linear->data);
    cpu_prim_close(&linear->weights);
    cpu_plain_close(&linear->plain);
    cpu_engine_close(&linear->scratch.engine);
    mem_free(linear);
}

/* Set *out to x as bfloat16. In training, backward reads it from the same
 * place. */
static err_code_t linear_bf16_read(op_t *op, const op_args_t *args,
                                   const void **out, err_t *err)
{
    cpu_linear_bf16_t *linear = op->state;
    void *kept;
    const void *x;
    err_code_t rc;

    *out = args->x;
    if (takes_rounded(op))
        return ERR_OK;
    kept = op->config.training ? args->workspace
                               : cpu_reorder_place(&linear->x, args, NULL);
    *out = kept;
    rc = cpu_reorder_read(&linear->plain.x, args, args->x, &x, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_read_to(&linear->x, args, x, kept, err);
    return rc;
}

/* Buffer for the result of the product: the input of the activation, or y if
 * there is none. */
static float *linear_bf16_product(const op_t *op, const op_args_t *args)
{
    const cpu_linear_bf16_t *linear = op->state;

    if (op->config.activation == OP_NONE)
        return args->y;
    return (float *)(op->config.training
                         ? (char *)args->workspace + linear->h_at
                         : (char *)args->scratch + linear->h_scratch_at);
}

static err_code_t linear_bf16_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_linear_bf16_t *linear = op->state;
    float *h = linear_bf16_product(op, args);
    void *w = op->config.training && op->config.need_dx
                  ? (char *)args->workspace + linear->w_at
                  : cpu_reorder_place(&linear->w, args, NULL);
    const void *x;
    err_code_t rc = linear_bf16_read(op, args, &x, err);

    if (rc == ERR_OK)
        rc = cpu_reorder_read_to(&linear->w, args, args->params[0], w, err);
    if (rc != ERR_OK)
        return rc;
    rc = cpu_scratch_matmul(&linear->scratch, &linear->forward, args,
                            (cpu_factors_t){x, w, args->params[1], h}, err);
    if (rc == ERR_OK && op->config.activation != OP_NONE)
        cpu_linear_activate(op, args, h);
    return rc;
}

/* Compute dx from the rounded [dy]. */
static err_code_t linear_bf16_run_data(op_t *op, const op_args_t *args,
                                       const void *dy, err_t *err)
{
    cpu_linear_bf16_t *linear = op->state;
    const cpu_factors_t dx = {
        .a = dy,
        .b = (const char *)args->workspace + linear->w_at,
        .c = cpu_reorder_place(&linear->plain.dx, args, args->dx)};
    err_code_t rc =
        cpu_scratch_matmul(&linear->scratch, &linear->data, args, dx, err);

    if (rc == ERR_OK)
        rc = cpu_reorder_flush(&linear->plain.dx, args, args->dx, err);
    return rc;
}

static err_code_t linear_bf16_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_linear_bf16_t *linear = op->state;
    const bool activated = op->config.activation != OP_NONE;
    const void *x = takes_rounded(op) ? args->x : args->workspace;
    const void *dy = cpu_reorder_place(&linear->dy, args, NULL);
    err_code_t rc = ERR_OK;

    if (activated || op->config.bias)
        cpu_linear_pass_dy(op, args,
                           activated ? linear_bf16_product(op, args) : NULL,
                           NULL, (uint16_t *)(uintptr_t)dy);
    else
        rc = cpu_reorder_read(&linear->dy, args, args->dy, &dy, err);
    if (rc != ERR_OK)
        return rc;
    rc = cpu_scratch_matmul(
        &linear->scratch, &linear->weights, args,
        (cpu_factors_t){.a = dy, .b = x, .c = args->dparams[0]}, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = linear_bf16_run_data(op, args, dy, err);
    return rc;
}

const op_kernel_t cpu_linear_bf16_kernel = {
    .open = linear_bf16_open,
    .close = linear_bf16_close,
    .forward = linear_bf16_forward,
    .backward = linear_bf16_backward,
};
