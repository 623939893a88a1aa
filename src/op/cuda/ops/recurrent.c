/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lstm and gru. The x part of all gates, a = x w_ih' + b_ih, is one product.
 * Then each step has a product, u = h w_hh' + b_hh, and a kernel that computes
 * gates and the next h (recurrent.h). Backward runs the steps in reverse, with
 * dh = du w_hh; dw, dx and db are products and sums over all steps.
 *
 * The workspace keeps gates [N,T,G] and, before each step, h and c [N,T,H]
 * (gru: u of gate n instead of c). With bf16, scratch has rounded copies of all
 * factors.
 */
#include "op/cuda/recurrent.h"
#include "op/cuda/blas.h"
#include "op/cuda/columns.h"
#include "op/cuda/cuda.h"
#include "op/cuda/room.h"

typedef struct cuda_recurrent {
    bool lstm, bf16;
    int64_t N, T, F, H, G;
    cuda_product_t *x, *h; /* forward: a of x, u of h */
    cuda_product_t *dh, *dwi, *dwh, *dx;
    size_t gates_at, h_at, kept_at; /* in the workspace; evaluation: in
                                       scratch */
    /* offsets in scratch */
    size_t u_at, dh_at, dc_at, da_at, du_at, sums_at;
    size_t x16_at, wi16_at, wh16_at, h16_at, da16_at, du16_at;
    size_t pad_at, back_pad_at;
} cuda_recurrent_t;

/* ---- opening ------------------------------------------------------------- */

static err_code_t recurrent_open_forward(op_t *op, err_t *err)
{
    cuda_recurrent_t *r = op->state;
    const cuda_product_spec_t x = {.what = "the x part of lstm or gru",
                                   .M = r->N * r->T,
                                   .N = r->G,
                                   .K = r->F,
                                   .b_transposed = true,
                                   .bias = op->config.bias,
                                   .compute_type = op->config.compute_type};
    const cuda_product_spec_t h = {.what = "a step of lstm or gru",
                                   .M = r->N,
                                   .N = r->G,
                                   .K = r->H,
                                   .a_row = r->T * r->H,
                                   .b_transposed = true,
                                   .bias = op->config.bias,
                                   .unaligned = r->H % 8 != 0,
                                   .compute_type = op->config.compute_type};
    err_code_t rc = cuda_product_open(op->dev, &x, &r->x, err);

    if (rc == ERR_OK)
        rc = cuda_product_open(op->dev, &h, &r->h, err);
    return rc;
}

static err_code_t recurrent_open_backward(op_t *op, err_t *err)
{
    cuda_recurrent_t *r = op->state;
    const op_type_t type = op->config.compute_type;
    const cuda_product_spec_t dh = {.what = "a step back of lstm or gru",
                                    .M = r->N,
                                    .N = r->H,
                                    .K = r->G,
                                    .a_row = r->T * r->G,
                                    .unaligned = r->G % 8 != 0,
                                    .compute_type = type};
    const cuda_product_spec_t dwi = {.what = "gradient of w_ih",
                                     .M = r->G,
                                     .N = r->F,
                                     .K = r->N * r->T,
                                     .a_transposed = true,
                                     .compute_type = type};
    const cuda_product_spec_t dwh = {.what = "gradient of w_hh",
                                     .M = r->G,
                                     .N = r->H,
                                     .K = r->N * r->T,
                                     .a_transposed = true,
                                     .compute_type = type};
    const cuda_product_spec_t dx = {.what = "gradient of x of lstm or gru",
                                    .M = r->N * r->T,
                                    .N = r->F,
                                    .K = r->G,
                                    .compute_type = type};
    err_code_t rc = cuda_product_open(op->dev, &dh, &r->dh, err);

    if (rc == ERR_OK)
        rc = cuda_product_open(op->dev, &dwi, &r->dwi, err);
    if (rc == ERR_OK)
        rc = cuda_product_open(op->dev, &dwh, &r->dwh, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = cuda_product_open(op->dev, &dx, &r->dx, err);
    return rc;
}

static size_t larger_scratch(size_t bytes, const cuda_product_t *product)
{
    return bytes > cuda_product_scratch(product)
               ? bytes
               : cuda_product_scratch(product);
}

/* Place rounded copies of x, w_ih, w_hh and h. */
static void recurrent_place_bf16(cuda_recurrent_t *r, size_t *end)
{
    if (!r->bf16)
        return;
    r->x16_at = cuda_room_halves(end, r->N * r->T * r->F);
    r->wi16_at = cuda_room_halves(end, r->G * r->F);
    r->wh16_at = cuda_room_halves(end, r->G * r->H);
    r->h16_at = cuda_room_halves(end, r->N * r->T * r->H);
}

static void recurrent_place_forward(op_t *op, size_t *end)
{
    cuda_recurrent_t *r = op->state;
    size_t kept = 0;
    size_t *to = op->config.training ? &kept : end;

    recurrent_place_bf16(r, end);
    r->gates_at = cuda_room_floats(to, r->N * r->T * r->G);
    r->h_at = cuda_room_floats(to, r->N * r->T * r->H);
    r->kept_at = cuda_room_floats(to, r->N * r->T * r->H);
    op->workspace_bytes = kept;
    r->u_at = cuda_room_floats(end, r->N * r->G);
    r->pad_at =
        cuda_room_take(end, larger_scratch(cuda_product_scratch(r->x), r->h));
}

static void recurrent_place_backward(cuda_recurrent_t *r, size_t *end)
{
    const int64_t slopes = r->N * r->T * r->G;
    size_t pad = cuda_product_scratch(r->dh);

    pad = larger_scratch(pad, r->dwi);
    pad = larger_scratch(pad, r->dwh);
    pad = larger_scratch(pad, r->dx);
    recurrent_place_bf16(r, end);
    r->dh_at = cuda_room_floats(end, r->N * r->H);
    r->dc_at = cuda_room_floats(end, r->N * r->H);
    r->du_at = r->da_at = cuda_room_floats(end, slopes);
    if (!r->lstm)
        r->du_at = cuda_room_floats(end, slopes);
    if (r->bf16)
        r->du16_at = r->da16_at = cuda_room_halves(end, slopes);
    if (r->bf16 && !r->lstm)
        r->du16_at = cuda_room_halves(end, slopes);
    r->sums_at = cuda_room_take(end, cuda_columns_scratch(r->N * r->T, r->G));
    r->back_pad_at = cuda_room_take(end, pad);
}

static err_code_t recurrent_open(op_t *op, err_t *err)
{
    size_t forward = 0, backward = 0;
    cuda_recurrent_t *r;
    err_code_t rc = mem_new(cuda_recurrent_t, 1, "lstm or gru", &r, err);

    if (rc != ERR_OK)
        return rc;
    op->state = r;
    r->lstm = op->config.kind == OP_LSTM;
    r->bf16 = op_computes_bf16(&op->config);
    r->N = op->config.in.dims[0];
    r->T = op->config.in.dims[1];
    r->F = op->config.in.dims[2];
    r->H = op->config.out;
    r->G = op_recurrent_gates(&op->config) * r->H;
    rc = recurrent_open_forward(op, err);
    if (rc == ERR_OK && op->config.training)
        rc = recurrent_open_backward(op, err);
    if (rc != ERR_OK)
        return rc;
    recurrent_place_forward(op, &forward);
    if (op->config.training)
        recurrent_place_backward(r, &backward);
    op->scratch_bytes = forward > backward ? forward : backward;
    op->adds = true;
    return ERR_OK;
}

static void recurrent_close(op_t *op)
{
    cuda_recurrent_t *r = op->state;

    if (r == NULL)
        return;
    cuda_product_close(r->x);
    cuda_product_close(r->h);
    cuda_product_close(r->dh);
    cuda_product_close(r->dwi);
    cuda_product_close(r->dwh);
    cuda_product_close(r->dx);
    mem_free(r);
}

/* ---- running ------------------------------------------------------------- */

/* The factors of products: x, w_ih, w_hh, or their rounded copies. */
typedef struct recurrent_factors {
    const void *x, *wi, *wh;
} recurrent_factors_t;

static err_code_t recurrent_round(const op_t *op, const op_args_t *args,
                                  recurrent_factors_t *out, err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    void *x = cuda_room_at(args->scratch, r->x16_at);
    void *wi = cuda_room_at(args->scratch, r->wi16_at);
    void *wh = cuda_room_at(args->scratch, r->wh16_at);
    err_code_t rc;

    *out = (recurrent_factors_t){args->x, args->params[0], args->params[1]};
    if (!r->bf16)
        return ERR_OK;
    rc = cuda_columns_round(op, args, x, args->x, r->N * r->T * r->F, err);
    if (rc == ERR_OK)
        rc =
            cuda_columns_round(op, args, wi, args->params[0], r->G * r->F, err);
    if (rc == ERR_OK)
        rc =
            cuda_columns_round(op, args, wh, args->params[1], r->G * r->H, err);
    *out = (recurrent_factors_t){x, wi, wh};
    return rc;
}

/* What all steps have in common. */
static cuda_step_t recurrent_step(const op_t *op, const op_args_t *args)
{
    const cuda_recurrent_t *r = op->state;
    void *memory = op->config.training ? args->workspace : args->scratch;
    void *scratch = args->scratch;
    cuda_step_t step = {.lstm = r->lstm,
                        .bf16 = r->bf16,
                        .N = r->N,
                        .T = r->T,
                        .H = r->H,
                        .gates = cuda_room_at(memory, r->gates_at),
                        .h = cuda_room_at(memory, r->h_at),
                        .kept = cuda_room_at(memory, r->kept_at),
                        .u = cuda_room_at(scratch, r->u_at),
                        .dh = cuda_room_at(scratch, r->dh_at),
                        .dc = cuda_room_at(scratch, r->dc_at),
                        .da = cuda_room_at(scratch, r->da_at),
                        .du = cuda_room_at(scratch, r->du_at)};

    if (r->bf16) {
        step.h_bf16 = cuda_room_at(scratch, r->h16_at);
        step.da_sum = step.da;
        step.du_sum = step.du;
        step.da = cuda_room_at(scratch, r->da16_at);
        step.du = cuda_room_at(scratch, r->du16_at);
    }
    return step;
}

/* Set tokens, y and dy of step number [s]. */
static void step_set(const op_t *op, const op_args_t *args, int64_t s,
                     cuda_step_t *step)
{
    const cuda_recurrent_t *r = op->state;
    const op_recurrent_t *options = &op->config.recurrent;
    const bool final = s == r->T - 1;

    step->token = options->reverse ? r->T - 1 - s : s;
    step->next = final ? -1 : step->token + (options->reverse ? -1 : 1);
    step->y = NULL;
    step->dy = NULL;
    if (options->last && !final)
        return;
    step->y_row = options->last ? r->H : r->T * r->H;
    if (args->y != NULL)
        step->y = (float *)args->y + (options->last ? 0 : step->token * r->H);
    if (args->dy != NULL)
        step->dy =
            (const float *)args->dy + (options->last ? 0 : step->token * r->H);
}

/* Address of token [token] of a matrix [N,T,width] of factors. */
static const void *factors_at(const cuda_recurrent_t *r, const void *factors,
                              int64_t token, int64_t width)
{
    return (const char *)factors + token * width * (r->bf16 ? 2 : 4);
}

static err_code_t recurrent_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    cuda_step_t step = recurrent_step(op, args);
    const void *h = r->bf16 ? step.h_bf16 : step.h;
    recurrent_factors_t factors;
    cuda_factors_t with = {.bias = args->params[2],
                           .c = step.gates,
                           .scratch = cuda_room_at(args->scratch, r->pad_at)};
    err_code_t rc = recurrent_round(op, args, &factors, err);

    with.a = factors.x;
    with.b = factors.wi;
    if (rc == ERR_OK)
        rc = cuda_product_run(r->x, args->stream, &with, err);
    step_set(op, args, 0, &step);
    if (rc == ERR_OK)
        rc = cuda_step_start(op, args, &step, err);
    with.b = factors.wh;
    with.bias = args->params[3];
    with.c = (void *)(uintptr_t)step.u;
    for (int64_t s = 0; s < r->T && rc == ERR_OK; s++) {
        step_set(op, args, s, &step);
        with.a = factors_at(r, h, step.token, r->H);
        rc = cuda_product_run(r->h, args->stream, &with, err);
        if (rc == ERR_OK)
            rc = cuda_step_forward(op, args, &step, err);
    }
    return rc;
}

/* Run the steps in reverse: da and du of all tokens. */
static err_code_t recurrent_steps_back(op_t *op, const op_args_t *args,
                                       const recurrent_factors_t *factors,
                                       cuda_step_t *step, err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    const size_t bytes = (size_t)(r->N * r->H) * sizeof(float);
    cuda_factors_t with = {.b = factors->wh,
                           .c = step->dh,
                           .add = true,
                           .scratch =
                               cuda_room_at(args->scratch, r->back_pad_at)};
    err_code_t rc = dev_fill(args->stream, step->dh, 0, bytes, err);

    if (rc == ERR_OK)
        rc = dev_fill(args->stream, step->dc, 0, bytes, err);
    for (int64_t s = r->T - 1; s >= 0 && rc == ERR_OK; s--) {
        step_set(op, args, s, step);
        rc = cuda_step_backward(op, args, step, err);
        with.a = factors_at(r, step->du, step->token, r->G);
        if (rc == ERR_OK && s > 0)
            rc = cuda_product_run(r->dh, args->stream, &with, err);
    }
    return rc;
}

static err_code_t recurrent_bias(op_t *op, const op_args_t *args,
                                 const cuda_step_t *step, err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    cuda_columns_t columns = {.rows = r->N * r->T,
                              .columns = r->G,
                              .dy = r->bf16 ? step->da_sum : step->da,
                              .sum = args->dparams[2],
                              .add = args->add,
                              .scratch =
                                  cuda_room_at(args->scratch, r->sums_at)};
    err_code_t rc = ERR_OK;

    if (!op->config.bias)
        return ERR_OK;
    rc = cuda_columns_run(op, args, &columns, err);
    columns.dy = r->bf16 ? step->du_sum : step->du;
    columns.sum = args->dparams[3];
    if (rc == ERR_OK)
        rc = cuda_columns_run(op, args, &columns, err);
    return rc;
}

/* dw and dx, from da and du of all tokens. */
static err_code_t recurrent_products(op_t *op, const op_args_t *args,
                                     const recurrent_factors_t *factors,
                                     const cuda_step_t *step, err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    cuda_factors_t with = {.a = step->da,
                           .b = factors->x,
                           .c = args->dparams[0],
                           .add = args->add,
                           .scratch =
                               cuda_room_at(args->scratch, r->back_pad_at)};
    err_code_t rc = cuda_product_run(r->dwi, args->stream, &with, err);

    with.a = step->du;
    with.b = r->bf16 ? step->h_bf16 : step->h;
    with.c = args->dparams[1];
    if (rc == ERR_OK)
        rc = cuda_product_run(r->dwh, args->stream, &with, err);
    with.a = step->da;
    with.b = factors->wi;
    with.c = args->dx;
    with.add = false;
    if (rc == ERR_OK && op->config.need_dx)
        rc = cuda_product_run(r->dx, args->stream, &with, err);
    return rc;
}

static err_code_t recurrent_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const cuda_recurrent_t *r = op->state;
    cuda_step_t step = recurrent_step(op, args);
    recurrent_factors_t factors;
    err_code_t rc = recurrent_round(op, args, &factors, err);

    if (rc == ERR_OK && r->bf16)
        rc = cuda_columns_round(op, args, step.h_bf16, step.h,
                                r->N * r->T * r->H, err);
    if (rc == ERR_OK)
        rc = recurrent_steps_back(op, args, &factors, &step, err);
    if (rc == ERR_OK)
        rc = recurrent_bias(op, args, &step, err);
    if (rc == ERR_OK)
        rc = recurrent_products(op, args, &factors, &step, err);
    return rc;
}

const op_kernel_t cuda_recurrent_kernel = {
    .open = recurrent_open,
    .close = recurrent_close,
    .forward = recurrent_forward,
    .backward = recurrent_backward,
};
