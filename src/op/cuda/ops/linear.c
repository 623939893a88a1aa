/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: three products (N input vectors of F features, O results each):
 *   h [N,O] = x w' + b,   dx [N,F] = dh w,   dw [O,F] = dh' x
 * y is h, or its activation; then training keeps h in the workspace, and one
 * pass computes dh = dy curve'(h) and db, the sums of its columns.
 *
 * With bf16, x, w and dh are rounded copies: those of x and w are kept in the
 * workspace for backward, so x itself need not be. An x that is stored as
 * bfloat16 is used as it is. h, b and db are float32.
 */
#include "op/cuda/blas.h"
#include "op/cuda/columns.h"
#include "op/cuda/cuda.h"
#include "op/cuda/room.h"
#include "op/op_geometry.h"

typedef struct cuda_linear {
    cuda_product_t *forward, *data, *weights;
    int64_t N, O, F;
    bool bf16, copies_x;     /* the products read a copy of x */
    size_t x_at, w_at, h_at; /* offsets in the workspace; evaluation: in
                                scratch */
    size_t dh_at, sums_at;   /* offsets in scratch */
    size_t pad_at;           /* of the products' scratch, in forward and in
                                backward */
    size_t back_pad_at;
} cuda_linear_t;

static bool has_curve(const op_t *op)
{
    return op->config.activation != OP_NONE;
}

/* Is h another tensor than y? Evaluation computes y in place. */
static bool keeps_h(const op_t *op)
{
    return has_curve(op) && (op->config.training || op_stored_bf16(&op->out));
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t linear_open_products(op_t *op, err_t *err)
{
    cuda_linear_t *linear = op->state;
    const int64_t N = linear->N, O = linear->O, F = linear->F;
    const op_type_t type = op->config.compute_type;
    const cuda_product_spec_t y = {.what = "linear",
                                   .M = N,
                                   .N = O,
                                   .K = F,
                                   .b_transposed = true,
                                   .bias = op->config.bias,
                                   .compute_type = type};
    const cuda_product_spec_t dw = {.what = "linear, gradient of its weights",
                                    .M = O,
                                    .N = F,
                                    .K = N,
                                    .a_transposed = true,
                                    .compute_type = type};
    const cuda_product_spec_t dx = {.what = "linear, gradient of its input",
                                    .M = N,
                                    .N = F,
                                    .K = O,
                                    .compute_type = type};
    err_code_t rc = cuda_product_open(op->dev, &y, &linear->forward, err);

    if (rc == ERR_OK && op->config.training)
        rc = cuda_product_open(op->dev, &dw, &linear->weights, err);
    if (rc == ERR_OK && op->config.training && op->config.need_dx)
        rc = cuda_product_open(op->dev, &dx, &linear->data, err);
    return rc;
}

/* Place what forward keeps: in the workspace, or in scratch in evaluation. */
static void linear_place_kept(op_t *op, size_t *end)
{
    cuda_linear_t *linear = op->state;

    if (linear->copies_x)
        linear->x_at = cuda_room_halves(end, linear->N * linear->F);
    if (linear->bf16)
        linear->w_at = cuda_room_halves(end, linear->O * linear->F);
    if (keeps_h(op))
        linear->h_at = cuda_room_floats(end, linear->N * linear->O);
}

static void linear_place(op_t *op)
{
    cuda_linear_t *linear = op->state;
    size_t kept = 0, forward = 0, backward = 0;
    size_t pad = cuda_product_scratch(linear->weights);

    linear_place_kept(op, &kept);
    if (op->config.training)
        op->workspace_bytes = kept;
    else
        forward = kept;
    linear->pad_at =
        cuda_room_take(&forward, cuda_product_scratch(linear->forward));
    if (pad < cuda_product_scratch(linear->data))
        pad = cuda_product_scratch(linear->data);
    if (op->config.training && linear->bf16)
        linear->dh_at = cuda_room_halves(&backward, linear->N * linear->O);
    else if (op->config.training && has_curve(op))
        linear->dh_at = cuda_room_floats(&backward, linear->N * linear->O);
    if (op->config.training && op->config.bias)
        linear->sums_at = cuda_room_take(
            &backward, cuda_columns_scratch(linear->N, linear->O));
    linear->back_pad_at = cuda_room_take(&backward, pad);
    op->scratch_bytes = forward > backward ? forward : backward;
}

static err_code_t linear_open(op_t *op, err_t *err)
{
    cuda_linear_t *linear;
    err_code_t rc = mem_new(cuda_linear_t, 1, "a linear op", &linear, err);

    if (rc != ERR_OK)
        return rc;
    op->state = linear;
    linear->N = op_linear_rows(&op->config);
    linear->F = op_linear_features(&op->config);
    linear->O = op->config.out;
    linear->bf16 = op_computes_bf16(&op->config);
    linear->copies_x = linear->bf16 && !op_stored_bf16(&op->config.in);
    rc = linear_open_products(op, err);
    if (rc != ERR_OK)
        return rc;
    linear_place(op);
    op->adds = true;
    op->reads_x = !linear->copies_x;
    return ERR_OK;
}

static void linear_close(op_t *op)
{
    cuda_linear_t *linear = op->state;

    if (linear == NULL)
        return;
    cuda_product_close(linear->forward);
    cuda_product_close(linear->data);
    cuda_product_close(linear->weights);
    mem_free(linear);
}

/* ---- forward ------------------------------------------------------------- */

/* Where x and w are as the products read them, and h. */
typedef struct linear_kept {
    const void *x, *w;
    float *h;
} linear_kept_t;

static linear_kept_t linear_find(const op_t *op, const op_args_t *args)
{
    const cuda_linear_t *linear = op->state;
    void *memory = op->config.training ? args->workspace : args->scratch;
    linear_kept_t kept = {.x = args->x, .w = args->params[0], .h = args->y};

    if (linear->copies_x)
        kept.x = cuda_room_at(memory, linear->x_at);
    if (linear->bf16)
        kept.w = cuda_room_at(memory, linear->w_at);
    if (keeps_h(op))
        kept.h = cuda_room_at(memory, linear->h_at);
    return kept;
}

static err_code_t linear_copy(const op_t *op, const op_args_t *args,
                              const linear_kept_t *kept, err_t *err)
{
    const cuda_linear_t *linear = op->state;
    err_code_t rc = ERR_OK;

    if (linear->copies_x)
        rc = cuda_columns_round(op, args, (void *)(uintptr_t)kept->x, args->x,
                                linear->N * linear->F, err);
    if (rc == ERR_OK && linear->bf16)
        rc = cuda_columns_round(op, args, (void *)(uintptr_t)kept->w,
                                args->params[0], linear->O * linear->F, err);
    return rc;
}

static err_code_t linear_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_linear_t *linear = op->state;
    const linear_kept_t kept = linear_find(op, args);
    const cuda_factors_t with = {
        .a = kept.x,
        .b = kept.w,
        .bias = args->params[1],
        .c = kept.h,
        .scratch = cuda_room_at(args->scratch, linear->pad_at)};
    const cuda_curve_t curve = {.kind = op->config.activation,
                                .h = kept.h,
                                .y = args->y,
                                .bf16 = op_stored_bf16(&op->out),
                                .count = linear->N * linear->O};
    err_code_t rc = linear_copy(op, args, &kept, err);

    if (rc == ERR_OK)
        rc = cuda_product_run(linear->forward, args->stream, &with, err);
    if (rc == ERR_OK && has_curve(op))
        rc = cuda_columns_activate(op, args, &curve, err);
    return rc;
}

/* ---- backward ------------------------------------------------------------ */

/* Compute db, and dh in the form that the products read. Returns it in *dh. */
static err_code_t linear_pass_dy(op_t *op, const op_args_t *args,
                                 const void **dh, err_t *err)
{
    const cuda_linear_t *linear = op->state;
    const bool copies = linear->bf16 || has_curve(op);
    const cuda_columns_t pass = {
        .rows = linear->N,
        .columns = linear->O,
        .curve = op->config.activation,
        .dy = args->dy,
        .h = has_curve(op) ? linear_find(op, args).h : NULL,
        .dh = copies ? cuda_room_at(args->scratch, linear->dh_at) : NULL,
        .bf16 = linear->bf16,
        .sum = op->config.bias ? args->dparams[1] : NULL,
        .add = args->add,
        .scratch = cuda_room_at(args->scratch, linear->sums_at)};

    *dh = copies ? pass.dh : args->dy;
    if (!copies && !op->config.bias)
        return ERR_OK;
    return cuda_columns_run(op, args, &pass, err);
}

static err_code_t linear_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_linear_t *linear = op->state;
    const linear_kept_t kept = linear_find(op, args);
    cuda_factors_t with = {
        .b = kept.x,
        .c = args->dparams[0],
        .add = args->add,
        .scratch = cuda_room_at(args->scratch, linear->back_pad_at)};
    err_code_t rc = linear_pass_dy(op, args, &with.a, err);

    if (rc == ERR_OK)
        rc = cuda_product_run(linear->weights, args->stream, &with, err);
    if (rc != ERR_OK || !op->config.need_dx)
        return rc;
    with.b = kept.w;
    with.c = args->dx;
    with.add = false;
    return cuda_product_run(linear->data, args->stream, &with, err);
}

const op_kernel_t cuda_linear_kernel = {
    .open = linear_open,
    .close = linear_close,
    .forward = linear_forward,
    .backward = linear_backward,
};
