/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* flatten and reshape. A private layout is reordered to plain in forward, and
 * back in backward. A plain x already has the order of y: y may be the buffer
 * of x, and then nothing is copied. */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"

typedef struct cpu_flatten {
    cpu_scratch_t scratch;
    bool plain;
    cpu_prim_t forward, backward;
} cpu_flatten_t;

static err_code_t cpu_flatten_open(op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    cpu_flatten_t *flatten;
    cpu_md_t x, y;
    err_code_t rc = mem_new(cpu_flatten_t, 1, "a flatten op", &flatten, err);

    if (rc != ERR_OK)
        return rc;
    op->state = flatten;
    flatten->plain = in->layout == NULL;
    op->in_place = flatten->plain;
    op->reads_x = false;
    if (flatten->plain)
        return ERR_OK;
    rc = cpu_engine_open(&flatten->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_md_of(&x, &flatten->scratch.engine, in, err);
    if (rc == ERR_OK)
        rc = cpu_md_plain(&y, &flatten->scratch.engine, cpu_shape_of(in, false),
                          err);
    if (rc == ERR_OK)
        rc = cpu_prim_reorder(&flatten->forward, &flatten->scratch.engine, &x,
                              &y, err);
    if (rc == ERR_OK)
        rc = cpu_prim_reorder(&flatten->backward, &flatten->scratch.engine, &y,
                              &x, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&flatten->scratch, op);
    return rc;
}

static void cpu_flatten_close(op_t *op)
{
    cpu_flatten_t *flatten = op->state;

    if (flatten == NULL)
        return;
    cpu_prim_close(&flatten->forward);
    cpu_prim_close(&flatten->backward);
    cpu_engine_close(&flatten->scratch.engine);
    mem_free(flatten);
}

static err_code_t cpu_flatten_move(op_t *op, cpu_prim_t *prim,
                                   const op_args_t *args, const void *from,
                                   void *to, err_t *err)
{
    const cpu_flatten_t *flatten = op->state;

    if (flatten->plain) {
        if (to != from)
            memcpy(to, from, op->out.bytes);
        return ERR_OK;
    }
    cpu_prim_bind(prim, DNNL_ARG_FROM, from);
    cpu_prim_bind(prim, DNNL_ARG_TO, to);
    return cpu_scratch_run(&flatten->scratch, prim, args, err);
}

static err_code_t cpu_flatten_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_flatten_t *flatten = op->state;

    return cpu_flatten_move(op, &flatten->forward, args, args->x, args->y, err);
}

static err_code_t cpu_flatten_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_flatten_t *flatten = op->state;

    if (!op->config.need_dx)
        return ERR_OK;
    return cpu_flatten_move(op, &flatten->backward, args, args->dy, args->dx,
                            err);
}

const op_kernel_t cpu_flatten_kernel = {
    .open = cpu_flatten_open,
    .close = cpu_flatten_close,
    .forward = cpu_flatten_forward,
    .backward = cpu_flatten_backward,
};
