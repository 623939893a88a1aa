/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * relu: y = max(x, 0); dx = dy where y > 0, otherwise 0. NaN stays NaN, so that
 * a diverging run is noticed. Backward reads y, not x, so y may overwrite x.
 */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_relu_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = true;
    return ERR_OK;
}

static err_code_t ref_relu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double x = ref_get(type, args->x, i);

        ref_put(type, args->y, i, x < 0 ? 0 : x);
    }
    return ERR_OK;
}

static err_code_t ref_relu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t i = 0; i < count; i++) {
        double dy = ref_get(type, args->dy, i);

        ref_put(type, args->dx, i, ref_get(type, args->y, i) > 0 ? dy : 0);
    }
    return ERR_OK;
}

const op_kernel_t ref_relu_kernel = {
    .open = ref_relu_open,
    .forward = ref_relu_forward,
    .backward = ref_relu_backward,
};
