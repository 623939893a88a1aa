/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * flatten, reshape and permute. Forward is one reorder of x to a plain y, and
 * backward is the opposite reorder of dy. permute describes x with its
 * dimensions in the order of y. For flatten and reshape a plain x already has
 * the order of y: y may be the buffer of x, and then nothing is copied.
 */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"

typedef struct cpu_rearrange {
    cpu_scratch_t scratch;
    bool same; /* x has the order of y: there are no reorders */
    cpu_prim_t forward, backward;
} cpu_rearrange_t;

/* Make the state of [op] and, unless [same], its engine. */
static err_code_t rearrange_new(op_t *op, const char *what, bool same,
                                err_t *err)
{
    cpu_rearrange_t *state;
    err_code_t rc = mem_new(cpu_rearrange_t, 1, what, &state, err);

    if (rc != ERR_OK)
        return rc;
    op->state = state;
    op->reads_x = false;
    state->same = same;
    return same ? ERR_OK : cpu_engine_open(&state->scratch.engine, err);
}

/* Make the reorders between [x] and a plain tensor with the dimensions of
 * [plain]. */
static err_code_t rearrange_make(op_t *op, const cpu_md_t *x,
                                 const op_desc_t *plain, err_t *err)
{
    cpu_rearrange_t *state = op->state;
    cpu_engine_t *engine = &state->scratch.engine;
    cpu_md_t y;
    err_code_t rc = cpu_md_plain(&y, engine, cpu_shape_of(plain, false), err);

    if (rc == ERR_OK)
        rc = cpu_prim_reorder(&state->forward, engine, x, &y, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = cpu_prim_reorder(&state->backward, engine, &y, x, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&state->scratch, op);
    return rc;
}

static err_code_t cpu_flatten_open(op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    const bool same = in->layout == NULL;
    cpu_rearrange_t *state;
    cpu_md_t x;
    err_code_t rc = rearrange_new(op, "a flatten op", same, err);

    op->in_place = same;
    if (rc != ERR_OK || same)
        return rc;
    state = op->state;
    rc = cpu_md_of(&x, &state->scratch.engine, in, err);
    return rc == ERR_OK ? rearrange_make(op, &x, in, err) : rc;
}

static err_code_t cpu_permute_open(op_t *op, err_t *err)
{
    const op_view_t *view = &op->config.view;
    cpu_order_t order = {.ndim = op->out.ndim};
    cpu_rearrange_t *state;
    cpu_md_t in, x;
    err_code_t rc = rearrange_new(op, "a permute op", false, err);

    if (rc != ERR_OK)
        return rc;
    state = op->state;
    for (int i = 0; i < view->ndim; i++)
        order.from[i + 1] = (int)view->dims[i];
    rc = cpu_md_of(&in, &state->scratch.engine, &op->config.in, err);
    if (rc == ERR_OK)
        rc = cpu_md_permute(&in, &state->scratch.engine, &order, &x, err);
    return rc == ERR_OK ? rearrange_make(op, &x, &op->out, err) : rc;
}

static void rearrange_close(op_t *op)
{
    cpu_rearrange_t *state = op->state;

    if (state == NULL)
        return;
    cpu_prim_close(&state->forward);
    cpu_prim_close(&state->backward);
    cpu_engine_close(&state->scratch.engine);
    mem_free(state);
}

/* Copy a tensor of the same order, unless it is there already. */
static err_code_t rearrange_copy(const op_t *op, const void *from, void *to)
{
    if (to != from)
        memcpy(to, from, op->out.bytes);
    return ERR_OK;
}

static err_code_t rearrange_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_rearrange_t *state = op->state;

    if (state->same)
        return rearrange_copy(op, args->x, args->y);
    cpu_prim_bind(&state->forward, DNNL_ARG_FROM, args->x);
    cpu_prim_bind(&state->forward, DNNL_ARG_TO, args->y);
    return cpu_scratch_run(&state->scratch, &state->forward, args, err);
}

static err_code_t rearrange_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_rearrange_t *state = op->state;

    if (!op->config.need_dx)
        return ERR_OK;
    if (state->same)
        return rearrange_copy(op, args->dy, args->dx);
    cpu_prim_bind(&state->backward, DNNL_ARG_FROM, args->dy);
    cpu_prim_bind(&state->backward, DNNL_ARG_TO, args->dx);
    return cpu_scratch_run(&state->scratch, &state->backward, args, err);
}

const op_kernel_t cpu_flatten_kernel = {
    .open = cpu_flatten_open,
    .close = rearrange_close,
    .forward = rearrange_forward,
    .backward = rearrange_backward,
};

const op_kernel_t cpu_permute_kernel = {
    .open = cpu_permute_open,
    .close = rearrange_close,
    .forward = rearrange_forward,
    .backward = rearrange_backward,
};
