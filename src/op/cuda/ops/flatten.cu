/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* flatten and reshape: the same elements in the same order under another shape.
 * An input with channels last is copied to the plain layout. */
#include "op/cuda/channels.h"
#include "op/cuda/device/copy.cuh"

static bool is_plain(const op_t *op)
{
    return op->config.in.layout == NULL;
}

static err_code_t flatten_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = is_plain(op);
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t flatten_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!is_plain(op))
        return cuda_channels_load(op, args, &op->config.in, args->x, args->y,
                                  err);
    copy_start(args->x, args->y, op_desc_elems(&op->config.in),
               cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t flatten_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->config.need_dx && !is_plain(op))
        return cuda_channels_store(op, args, &op->config.in, args->dy, args->dx,
                                   err);
    if (op->config.need_dx)
        copy_start(args->dy, args->dx, op_desc_elems(&op->config.in),
                   cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_flatten_kernel = {
    flatten_open, NULL, flatten_forward, flatten_backward};
