/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mse: loss = sum (x - t)^2; dx = scale * 2 (x - t). */
#include "op/op_desc.h"
#include "op/op_loss.h"
#include "op/ref/ref.h"

static err_code_t ref_mse_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);
    double loss = 0;

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double d = ref_get(type, args->x, i) - ref_get(type, args->target, i);

        loss += ref_sample_weight(args, i / sample) * (d * d);
    }
    *args->loss_sum = loss;
    return ERR_OK;
}

static err_code_t ref_mse_backward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);

    (void)err;
    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    for (int64_t i = 0; i < count; i++)
        ref_put(
            type, args->dx, i,
            ref_sample_weight(args, i / sample) * op_loss_scale(args) * 2 *
                (ref_get(type, args->x, i) - ref_get(type, args->target, i)));
    return ERR_OK;
}

const op_kernel_t ref_mse_kernel = {
    .forward = ref_mse_forward,
    .backward = ref_mse_backward,
};
