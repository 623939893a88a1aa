/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear with products in bfloat16: x, w and dy are rounded into buffers, laid
 * out as they were; oneDNN multiplies these and sums in float32. Forward leaves
 * the rounded x and w in the workspace for backward, so that x itself need not
 * be kept (half of the memory), and w is rounded once a step. An x that comes
 * rounded is taken, and kept, as it is. The bias and its gradient are float32;
 * dy is rounded in the pass that sums it up.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/linear.h"

typedef struct cpu_narrow {
    cpu_scratch_t room;
    cpu_plain_t plain;
    cpu_prim_t forward, data, weights;
    cpu_reorder_t x, w, dy; /* from float32 to bfloat16 */
    size_t w_at, h_at;      /* of w and h, behind x, in the workspace */
    size_t h_room;          /* of h in scratch, in evaluation */
} cpu_narrow_t;

/* The port of a plain matrix. */
static err_code_t cpu_narrow_port(cpu_reorder_t *port, cpu_scratch_t *room,
                                  int64_t rows, int64_t columns, err_t *err)
{
    const int64_t dims[] = {rows, columns};
    cpu_md_t wide, narrow;
    err_code_t code = cpu_md_plain(&wide, &room->engine, 2, dims, err);

    if (code == ERR_OK)
        code = cpu_md_plain_bf16(&narrow, &room->engine, 2, dims, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(port, room, &wide, &narrow, err);
    return code;
}

static err_code_t cpu_narrow_open_backward(op_t *op, const cpu_matmul_spec_t *y,
                                           err_t *err)
{
    cpu_narrow_t *narrow = op->state;
    const int64_t N = y->M, O = y->N, F = y->K;
    cpu_engine_t *engine = &narrow->room.engine;
    cpu_matmul_spec_t dw = {
        .M = O, .N = F, .K = N, .a_turned = true, .bf16 = true};
    cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O, .bf16 = true};
    err_code_t code = cpu_prim_matmul(&narrow->weights, engine, &dw, err);

    if (code == ERR_OK && op->config.need_dx)
        code = cpu_prim_matmul(&narrow->data, engine, &dx, err);
    if (code == ERR_OK)
        code = cpu_narrow_port(&narrow->dy, &narrow->room, N, O, err);
    if (!op->config.in.narrow)
        narrow->w_at = mem_round(sizeof(uint16_t) * (size_t)(N * F));
    narrow->h_at = narrow->w_at;
    if (op->config.need_dx)
        narrow->h_at += mem_round(sizeof(uint16_t) * (size_t)(O * F));
    op->workspace_bytes = narrow->h_at;
    if (op->config.activation != OP_LINEAR)
        op->workspace_bytes += sizeof(float) * (size_t)(N * O);
    op->reads_x = op->config.in.narrow;
    return code;
}

static err_code_t cpu_narrow_open(op_t *op, err_t *err)
{
    cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    cpu_narrow_t *narrow;
    err_code_t code = mem_alloc(sizeof *narrow, "a linear op", &op->state, err);

    if (code != ERR_OK)
        return code;
    narrow = op->state;
    y.bf16 = true;
    code = cpu_engine_open(&narrow->room.engine, err);
    if (code == ERR_OK)
        code = cpu_plain_open(&narrow->plain, &narrow->room, op, err);
    if (code == ERR_OK)
        code = cpu_prim_matmul(&narrow->forward, &narrow->room.engine, &y, err);
    if (code == ERR_OK && !op->config.in.narrow)
        code = cpu_narrow_port(&narrow->x, &narrow->room, y.M, y.K, err);
    if (code == ERR_OK)
        code = cpu_narrow_port(&narrow->w, &narrow->room, y.N, y.K, err);
    if (code == ERR_OK && op->config.training)
        code = cpu_narrow_open_backward(op, &y, err);
    if (op->config.activation != OP_LINEAR && !op->config.training)
        narrow->h_room = cpu_scratch_take(&narrow->room,
                                          sizeof(float) * (size_t)(y.M * y.N));
    if (code == ERR_OK)
        cpu_scratch_finish(&narrow->room, op);
    return code;
}

static void cpu_narrow_close(op_t *op)
{
    cpu_narrow_t *narrow = op->state;

    if (narrow == NULL)
        return;
    cpu_reorder_close(&narrow->x);
    cpu_reorder_close(&narrow->w);
    cpu_reorder_close(&narrow->dy);
    cpu_prim_close(&narrow->forward);
    cpu_prim_close(&narrow->data);
    cpu_prim_close(&narrow->weights);
    cpu_plain_close(&narrow->plain);
    cpu_engine_close(&narrow->room.engine);
    mem_free(narrow);
}

/* x as bfloat16, which backward finds in the same place. */
static err_code_t cpu_narrow_read(op_t *op, const op_args_t *args,
                                  const void **out, err_t *err)
{
    cpu_narrow_t *narrow = op->state;
    void *kept;
    const void *x;
    err_code_t code;

    *out = args->x;
    if (op->config.in.narrow)
        return ERR_OK;
    kept = op->config.training ? args->workspace
                               : cpu_reorder_place(&narrow->x, args, NULL);
    *out = kept;
    code = cpu_reorder_read(&narrow->plain.x, &narrow->room, args, args->x, &x,
                            err);
    if (code == ERR_OK)
        code =
            cpu_reorder_read_to(&narrow->x, &narrow->room, args, x, kept, err);
    return code;
}

/* Where the product goes that the activation is of; without one, y. */
static float *cpu_narrow_product(const op_t *op, const op_args_t *args)
{
    const cpu_narrow_t *narrow = op->state;

    if (op->config.activation == OP_LINEAR)
        return args->y;
    return (float *)(op->config.training
                         ? (char *)args->workspace + narrow->h_at
                         : (char *)args->scratch + narrow->h_room);
}

static err_code_t cpu_narrow_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_narrow_t *narrow = op->state;
    float *h = cpu_narrow_product(op, args);
    void *w = op->config.training && op->config.need_dx
                  ? (char *)args->workspace + narrow->w_at
                  : cpu_reorder_place(&narrow->w, args, NULL);
    const void *x;
    err_code_t code = cpu_narrow_read(op, args, &x, err);

    if (code == ERR_OK)
        code = cpu_reorder_read_to(&narrow->w, &narrow->room, args,
                                   args->params[0], w, err);
    if (code != ERR_OK)
        return code;
    cpu_prim_bind(&narrow->forward, DNNL_ARG_SRC, x);
    cpu_prim_bind(&narrow->forward, DNNL_ARG_WEIGHTS, w);
    cpu_prim_bind(&narrow->forward, DNNL_ARG_BIAS, args->params[1]);
    cpu_prim_bind(&narrow->forward, DNNL_ARG_DST, h);
    code = cpu_scratch_run(&narrow->room, &narrow->forward, args, err);
    if (code == ERR_OK && op->config.activation != OP_LINEAR)
        cpu_linear_activate(op, args, h);
    return code;
}

/* dx from the rounded [dy]. */
static err_code_t cpu_narrow_run_data(op_t *op, const op_args_t *args,
                                      const void *dy, err_t *err)
{
    cpu_narrow_t *narrow = op->state;
    err_code_t code;

    cpu_prim_bind(&narrow->data, DNNL_ARG_SRC, dy);
    cpu_prim_bind(&narrow->data, DNNL_ARG_WEIGHTS,
                  (const char *)args->workspace + narrow->w_at);
    cpu_prim_bind(&narrow->data, DNNL_ARG_DST,
                  cpu_reorder_place(&narrow->plain.dx, args, args->dx));
    code = cpu_scratch_run(&narrow->room, &narrow->data, args, err);
    if (code == ERR_OK)
        code = cpu_reorder_flush(&narrow->plain.dx, &narrow->room, args,
                                 args->dx, err);
    return code;
}

static err_code_t cpu_narrow_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_narrow_t *narrow = op->state;
    const bool activated = op->config.activation != OP_LINEAR;
    const void *x = op->config.in.narrow ? args->x : args->workspace;
    const void *dy = cpu_reorder_place(&narrow->dy, args, NULL);
    err_code_t code = ERR_OK;

    if (activated || op->config.bias)
        cpu_linear_pass_dy(op, args,
                           activated ? cpu_narrow_product(op, args) : NULL,
                           NULL, (uint16_t *)(uintptr_t)dy);
    else
        code = cpu_reorder_read(&narrow->dy, &narrow->room, args, args->dy, &dy,
                                err);
    if (code != ERR_OK)
        return code;
    cpu_prim_bind(&narrow->weights, DNNL_ARG_SRC, dy);
    cpu_prim_bind(&narrow->weights, DNNL_ARG_WEIGHTS, x);
    cpu_prim_bind(&narrow->weights, DNNL_ARG_DST, args->dparams[0]);
    code = cpu_scratch_run(&narrow->room, &narrow->weights, args, err);
    if (code == ERR_OK && op->config.need_dx)
        code = cpu_narrow_run_data(op, args, dy, err);
    return code;
}

const op_kernel_t cpu_linear_bf16_kernel = {
    .open = cpu_narrow_open,
    .close = cpu_narrow_close,
    .forward = cpu_narrow_forward,
    .backward = cpu_narrow_backward,
};
