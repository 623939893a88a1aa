/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* add: y = x + other[0] + ..., summed from left to right, then relu if
 * config.relu. Each gradient is dy, or with relu 0 where y is not above 0. */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_add_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_y = op->config.relu;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_add_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double sum = ref_get(type, args->x, i);

        for (int k = 0; k < op->config.others; k++)
            sum += ref_get(type, args->other[k], i);
        ref_put(type, args->y, i, op->config.relu && sum < 0 ? 0 : sum);
    }
    return ERR_OK;
}

static void ref_add_gradient(op_t *op, const op_args_t *args, void *to)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    for (int64_t i = 0; i < count && to != NULL; i++)
        ref_put(type, to, i,
                op->config.relu && !(ref_get(type, args->y, i) > 0)
                    ? 0
                    : ref_get(type, args->dy, i));
}

static err_code_t ref_add_backward(op_t *op, const op_args_t *args, err_t *err)
{
    (void)err;
    for (int k = 0; k < op->config.others; k++)
        ref_add_gradient(op, args, args->dother[k]);
    if (op->config.need_dx)
        ref_add_gradient(op, args, args->dx);
    return ERR_OK;
}

const op_kernel_t ref_add_kernel = {
    .open = ref_add_open,
    .forward = ref_add_forward,
    .backward = ref_add_backward,
};
