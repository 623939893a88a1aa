/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* flatten and reshape: the same elements in the same order under another shape.
 */
#include "op/cuda/device/each.cuh"

static err_code_t flatten_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t flatten_forward(op_t *op, const op_args_t *args, err_t *err)
{
    each_start_copy(args->x, args->y, op_desc_elems(&op->config.in),
                    cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t flatten_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->config.need_dx)
        each_start_copy(args->dy, args->dx, op_desc_elems(&op->config.in),
                        cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_flatten_kernel = {
    flatten_open, NULL, flatten_forward, flatten_backward};
