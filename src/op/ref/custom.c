/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Ops of plugins. All tensors are plain here, so they are passed on
 * unchanged. */
#include "base/mem.h"
#include "op/op_custom.h"
#include "op/ref/ref.h"

static err_code_t ref_custom_open(op_t *op, err_t *err)
{
    cddp_shapes_t *shapes;
    err_code_t rc =
        mem_new(cddp_shapes_t, 1, "an op of a plugin", &shapes, err);

    if (rc != ERR_OK)
        return rc;
    op->state = shapes;
    rc = op_custom_shapes(&op->config, shapes, err);
    shapes->options = op->config.custom_options;
    op->workspace_bytes = shapes->workspace;
    op->flops = shapes->flops;
    op->reads_y = true;
    return rc;
}

static void ref_custom_close(op_t *op)
{
    mem_free(op->state);
}

static err_code_t ref_custom_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const float *x[OP_INPUTS_MAX] = {args->x};

    for (int k = 0; k < op->config.others; k++)
        x[k + 1] = args->other[k];
    return op_custom_forward(op, op->state, x, args, err);
}

static err_code_t ref_custom_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    const float *x[OP_INPUTS_MAX] = {args->x};
    float *dx[OP_INPUTS_MAX] = {op->config.need_dx ? args->dx : NULL};

    for (int k = 0; k < op->config.others; k++) {
        x[k + 1] = args->other[k];
        dx[k + 1] = args->dother[k];
    }
    return op_custom_backward(op, op->state, x, dx, args, err);
}

const op_kernel_t ref_custom_kernel = {
    .open = ref_custom_open,
    .close = ref_custom_close,
    .forward = ref_custom_forward,
    .backward = ref_custom_backward,
};
