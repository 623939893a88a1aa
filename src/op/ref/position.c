/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* position: y = x + w, where w has the shape of a sample. dw is the sum of dy
 * over the samples. */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_position_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_position_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++)
        ref_put(type, args->y, i,
                ref_get(type, args->x, i) +
                    ref_get(type, args->params[0], i % sample));
    return ERR_OK;
}

static err_code_t ref_position_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < sample; i++) {
        double sum = 0;

        for (int64_t at = i; at < count; at += sample)
            sum += ref_get(type, args->dy, at);
        ref_put(type, args->dparams[0], i, sum);
    }
    for (int64_t i = 0; i < count && op->config.need_dx; i++)
        ref_put(type, args->dx, i, ref_get(type, args->dy, i));
    return ERR_OK;
}

const op_kernel_t ref_position_kernel = {
    .open = ref_position_open,
    .forward = ref_position_forward,
    .backward = ref_position_backward,
};
