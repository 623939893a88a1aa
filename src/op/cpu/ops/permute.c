/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* permute. Forward reorders x, described with its dimensions in the order of
 * y, to a plain y; backward reorders dy back. */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"

typedef struct cpu_permute {
    cpu_scratch_t scratch;
    cpu_prim_t forward, backward;
} cpu_permute_t;

static err_code_t cpu_permute_open(op_t *op, err_t *err)
{
    const op_view_t *view = &op->config.view;
    int order[OP_DIMS_MAX] = {0};
    cpu_permute_t *permute;
    cpu_md_t in, x, y;
    err_code_t rc = mem_new(cpu_permute_t, 1, "a permute op", &permute, err);

    if (rc != ERR_OK)
        return rc;
    op->state = permute;
    op->reads_x = false;
    for (int i = 0; i < view->ndim; i++)
        order[i + 1] = (int)view->dims[i];
    rc = cpu_engine_open(&permute->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_md_of(&in, &permute->scratch.engine, &op->config.in, err);
    if (rc == ERR_OK)
        rc = cpu_md_permute(&in, &permute->scratch.engine, op->out.ndim, order,
                            &x, err);
    if (rc == ERR_OK)
        rc = cpu_md_plain(&y, &permute->scratch.engine,
                          cpu_shape_of(&op->out, false), err);
    if (rc == ERR_OK)
        rc = cpu_prim_reorder(&permute->forward, &permute->scratch.engine, &x,
                              &y, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = cpu_prim_reorder(&permute->backward, &permute->scratch.engine, &y,
                              &x, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&permute->scratch, op);
    return rc;
}

static void cpu_permute_close(op_t *op)
{
    cpu_permute_t *permute = op->state;

    if (permute == NULL)
        return;
    cpu_prim_close(&permute->forward);
    cpu_prim_close(&permute->backward);
    cpu_engine_close(&permute->scratch.engine);
    mem_free(permute);
}

static err_code_t cpu_permute_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_permute_t *permute = op->state;

    cpu_prim_bind(&permute->forward, DNNL_ARG_FROM, args->x);
    cpu_prim_bind(&permute->forward, DNNL_ARG_TO, args->y);
    return cpu_scratch_run(&permute->scratch, &permute->forward, args, err);
}

static err_code_t cpu_permute_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_permute_t *permute = op->state;

    if (!op->config.need_dx)
        return ERR_OK;
    cpu_prim_bind(&permute->backward, DNNL_ARG_FROM, args->dy);
    cpu_prim_bind(&permute->backward, DNNL_ARG_TO, args->dx);
    return cpu_scratch_run(&permute->scratch, &permute->backward, args, err);
}

const op_kernel_t cpu_permute_kernel = {
    .open = cpu_permute_open,
    .close = cpu_permute_close,
    .forward = cpu_permute_forward,
    .backward = cpu_permute_backward,
};
