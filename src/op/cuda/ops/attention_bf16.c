/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention in bfloat16 by the plans of cuDNN (attention_plan.h). The inputs
 * and y are kept in the workspace as bfloat16, so backward needs neither x nor
 * the float32 y. cuDNN writes y and the gradients as bfloat16; they are then
 * converted to float32.
 */
#include <math.h>
#include <stdio.h>

#include "op/cuda/attention.h"
#include "op/cuda/attention_share.h"
#include "op/cuda/columns.h"
#include "op/cuda/cuda.h"
#include "op/cuda/room.h"

#define INPUTS 3 /* maximum: q, k and v in a tensor each */

typedef struct attention {
    dev_device_t *dev;
    const char *why; /* cuDNN does not compute it; NULL: it does */
    cuda_attention_shared_t *shared; /* NULL: cuDNN was not asked */
    const cuda_attention_plans_t *plans;
    cudnnHandle_t dnn;
    op_attention_t a;
    int inputs;            /* tensors that hold q, k and v: 1 to 3 */
    int64_t elems[INPUTS]; /* of each input */
    size_t
        in_at[INPUTS]; /* bfloat16, in the workspace; evaluation: in scratch */
    size_t y_at, level_at; /* as in_at */
    size_t pad_at;         /* in scratch, forward */
    size_t dx_at[INPUTS];  /* in scratch, backward */
    size_t dy_at, sums_at, back_pad_at;
    float scale, lowest, one; /* what the plans read when they run */
    char note[128];
} attention_t;

/* ---- opening ------------------------------------------------------------- */

static const op_desc_t *input_of(const op_t *op, int i)
{
    return i == 0 ? &op->config.in : &op->config.other[i - 1];
}

static int64_t queries_of(const attention_t *s)
{
    return s->a.N * s->a.H * s->a.T;
}

static void place(op_t *op)
{
    attention_t *s = op->state;
    size_t kept = 0, forward = 0, backward = 0;
    size_t *end = op->config.training ? &kept : &forward;

    for (int i = 0; i < s->inputs; i++)
        s->in_at[i] = cuda_room_halves(end, s->elems[i]);
    s->y_at = cuda_room_halves(end, queries_of(s) * s->a.D);
    s->pad_at =
        cuda_room_take(&forward, cuda_plan_workspace(s->plans->forward));
    if (op->config.training) {
        s->level_at = cuda_room_floats(&kept, queries_of(s));
        s->dy_at = cuda_room_halves(&backward, queries_of(s) * s->a.D);
        for (int i = 0; i < s->inputs; i++)
            s->dx_at[i] = cuda_room_halves(&backward, s->elems[i]);
        s->sums_at = cuda_room_floats(&backward, queries_of(s));
        s->back_pad_at =
            cuda_room_take(&backward, cuda_plan_workspace(s->plans->backward));
    }
    op->workspace_bytes = kept == 0 ? 0 : kept + CUDA_ROOM_EXTRA;
    op->scratch_bytes =
        (forward > backward ? forward : backward) + CUDA_ROOM_EXTRA;
    op->reads_x = false;
}

static const op_kernel_t attention_bf16_kernel;

err_code_t cuda_attention_bf16_begin(op_t *op, err_t *err)
{
    cuda_attention_shape_t shape;
    attention_t *s;
    err_code_t rc;

    if (!op_computes_bf16(&op->config))
        return ERR_OK;
    rc = mem_new(attention_t, 1, "an attention", &s, err);
    if (rc != ERR_OK)
        return rc;
    op->state = s;
    s->dev = op->dev;
    s->a = op_attention_of(&op->config);
    s->why = cuda_attention_lacks(&op->config, dev_cuda_arch(op->dev));
    if (s->why != NULL)
        return ERR_OK;
    shape = cuda_attention_shape_of(&op->config);
    return cuda_attention_share(op->dev, &shape, &s->shared, err);
}

err_code_t cuda_attention_bf16_take(op_t *op, bool *taken, err_t *err)
{
    attention_t *s = op->state;
    err_code_t rc = ERR_OK;

    *taken = false;
    if (s == NULL)
        return ERR_OK;
    if (s->why == NULL)
        rc = cuda_attention_await(s->shared, &s->plans, &s->dnn, err);
    if (rc != ERR_OK)
        return rc;
    if (s->why == NULL && s->plans == NULL)
        s->why = "cuDNN has no deterministic engine for this shape";
    op->note = s->note;
    if (s->why != NULL) {
        snprintf(s->note, sizeof s->note, "without cuDNN: %s", s->why);
        return ERR_OK;
    }
    snprintf(s->note, sizeof s->note, "by cuDNN");
    s->inputs = s->a.input[2] + 1;
    for (int i = 0; i < s->inputs; i++)
        s->elems[i] = op_desc_elems(input_of(op, i));
    s->scale = 1.0F / sqrtf((float)s->a.D);
    s->lowest = -INFINITY;
    s->one = 1;
    place(op);
    op->kernel = &attention_bf16_kernel;
    *taken = true;
    return ERR_OK;
}

void cuda_attention_bf16_close(op_t *op)
{
    attention_t *s = op->state;

    if (s == NULL)
        return;
    cuda_attention_drop(s->dev, s->shared);
    mem_free(s);
}

/* ---- running ------------------------------------------------------------- */

/* The address of a kept tensor. cuDNN wants aligned addresses, so the memory of
 * a call is used from its first aligned byte on. */
static void *kept_at(const op_t *op, const op_args_t *args, size_t at)
{
    void *memory = op->config.training ? args->workspace : args->scratch;

    return cuda_room_at(cuda_room_align(memory), at);
}

static void *scratch_at(const op_args_t *args, size_t at)
{
    return cuda_room_at(cuda_room_align(args->scratch), at);
}

static void *half_at(void *block, int64_t element)
{
    return (uint16_t *)block + element;
}

/* Fill in the addresses that both plans need: q, k, v, y, level, and the
 * numbers in host memory. */
static void data_fill(const op_t *op, const op_args_t *args,
                      void *data[CUDA_ATTENTION_TENSORS])
{
    attention_t *s = op->state;

    for (int i = 0; i < INPUTS; i++)
        data[CUDA_ATTENTION_Q + i] =
            half_at(kept_at(op, args, s->in_at[s->a.input[i]]), s->a.base[i]);
    data[CUDA_ATTENTION_Y] = kept_at(op, args, s->y_at);
    data[CUDA_ATTENTION_LEVEL] = kept_at(op, args, s->level_at);
    data[CUDA_ATTENTION_SCALE] = &s->scale;
    data[CUDA_ATTENTION_LOWEST] = &s->lowest;
    data[CUDA_ATTENTION_ONE] = &s->one;
}

static err_code_t run(const op_t *op, const op_args_t *args, cuda_plan_t *plan,
                      void *const *data, size_t pad_at, err_t *err)
{
    const attention_t *s = op->state;
    err_code_t rc =
        cuda_dnn_check(cudnnSetStream(s->dnn, cuda_stream(args)),
                       "cudnnSetStream", op_kind_name(op->config.kind), err);

    return rc == ERR_OK
               ? cuda_plan_run(plan, data, scratch_at(args, pad_at), err)
               : rc;
}

static err_code_t attention_bf16_forward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    const attention_t *s = op->state;
    void *data[CUDA_ATTENTION_TENSORS] = {NULL};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < s->inputs && rc == ERR_OK; i++)
        rc = cuda_columns_round(op, args, kept_at(op, args, s->in_at[i]),
                                i == 0 ? args->x : args->other[i - 1],
                                s->elems[i], err);
    data_fill(op, args, data);
    if (rc == ERR_OK)
        rc = run(op, args, s->plans->forward, data, s->pad_at, err);
    if (rc == ERR_OK)
        rc = cuda_columns_widen(op, args, args->y, data[CUDA_ATTENTION_Y],
                                queries_of(s) * s->a.D, err);
    return rc;
}

static void *gradient_of(const op_t *op, const op_args_t *args, int i)
{
    if (i > 0)
        return args->dother[i - 1];
    return op->config.need_dx ? args->dx : NULL;
}

static err_code_t attention_bf16_backward(op_t *op, const op_args_t *args,
                                          err_t *err)
{
    const attention_t *s = op->state;
    void *data[CUDA_ATTENTION_TENSORS] = {NULL};
    bool wanted = false;
    err_code_t rc;

    for (int i = 0; i < s->inputs; i++)
        wanted = wanted || gradient_of(op, args, i) != NULL;
    if (!wanted)
        return ERR_OK;
    data_fill(op, args, data);
    data[CUDA_ATTENTION_DY] = scratch_at(args, s->dy_at);
    data[CUDA_ATTENTION_SUMS] = scratch_at(args, s->sums_at);
    for (int i = 0; i < INPUTS; i++)
        data[CUDA_ATTENTION_DQ + i] =
            half_at(scratch_at(args, s->dx_at[s->a.input[i]]), s->a.base[i]);
    rc = cuda_columns_round(op, args, data[CUDA_ATTENTION_DY], args->dy,
                            queries_of(s) * s->a.D, err);
    if (rc == ERR_OK)
        rc = run(op, args, s->plans->backward, data, s->back_pad_at, err);
    for (int i = 0; i < s->inputs && rc == ERR_OK; i++)
        if (gradient_of(op, args, i) != NULL)
            rc = cuda_columns_widen(op, args, gradient_of(op, args, i),
                                    scratch_at(args, s->dx_at[i]), s->elems[i],
                                    err);
    return rc;
}

static const op_kernel_t attention_bf16_kernel = {
    .close = cuda_attention_bf16_close,
    .forward = attention_bf16_forward,
    .backward = attention_bf16_backward,
};
