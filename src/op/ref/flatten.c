/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* flatten and reshape: the same elements in the same order under another shape.
 */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_flatten_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    return ERR_OK;
}

static void ref_flatten_copy(op_t *op, const void *from, void *to)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    for (int64_t i = 0; i < count; i++)
        ref_put(type, to, i, ref_get(type, from, i));
}

static err_code_t ref_flatten_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    ref_flatten_copy(op, args->x, args->y);
    return ERR_OK;
}

static err_code_t ref_flatten_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_flatten_copy(op, args->dy, args->dx);
    return ERR_OK;
}

const op_kernel_t ref_flatten_kernel = {
    .open = ref_flatten_open,
    .forward = ref_flatten_forward,
    .backward = ref_flatten_backward,
};
