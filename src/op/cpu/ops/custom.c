/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Ops of plugins. Inputs are converted to plain layout, and gradients back to
 * the layouts of the inputs. */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_custom.h"

typedef struct cpu_custom {
    cpu_combine_t combine;
    cddp_shapes_t shapes;
} cpu_custom_t;

static err_code_t cpu_custom_open(op_t *op, err_t *err)
{
    err_code_t rc = cpu_combine_open_in(op, sizeof(cpu_custom_t), true, err);
    cpu_custom_t *custom = op->state;

    if (rc == ERR_OK)
        rc = op_custom_shapes(&op->config, &custom->shapes, err);
    if (rc != ERR_OK)
        return rc;
    custom->shapes.options = op->config.custom_options;
    op->workspace_bytes = custom->shapes.workspace;
    op->flops = custom->shapes.flops;
    op->reads_y = true;
    return ERR_OK;
}

static err_code_t cpu_custom_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const cpu_custom_t *custom = op->state;
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    return rc == ERR_OK ? op_custom_forward(op, &custom->shapes, x, args, err)
                        : rc;
}

static err_code_t cpu_custom_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_custom_t *custom = op->state;
    const float *x[OP_INPUTS_MAX];
    float *dx[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    for (int k = 0; k <= op->config.others; k++)
        dx[k] = cpu_combine_place(op, args, k);
    if (rc == ERR_OK)
        rc = op_custom_backward(op, &custom->shapes, x, dx, args, err);
    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        rc = cpu_combine_flush(op, args, k, err);
    return rc;
}

const op_kernel_t cpu_custom_kernel = {
    .open = cpu_custom_open,
    .close = cpu_combine_close,
    .forward = cpu_custom_forward,
    .backward = cpu_custom_backward,
};
