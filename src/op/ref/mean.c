/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mean over neighbouring dimensions: x is [outer, count, inner], y [outer,
 * inner]; dx = dy / count. */
#include "op/op_geometry.h"
#include "op/ref/ref.h"

static err_code_t ref_mean_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_mean_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t mean = op_reduce_of(&op->config);

    (void)err;
    for (int64_t o = 0; o < mean.outer; o++)
        for (int64_t i = 0; i < mean.inner; i++) {
            double sum = 0;

            for (int64_t k = 0; k < mean.count; k++)
                sum += ref_get(type, args->x,
                               (o * mean.count + k) * mean.inner + i);
            ref_put(type, args->y, o * mean.inner + i,
                    sum / (double)mean.count);
        }
    return ERR_OK;
}

static err_code_t ref_mean_backward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t mean = op_reduce_of(&op->config);

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t o = 0; o < mean.outer; o++)
        for (int64_t k = 0; k < mean.count; k++)
            for (int64_t i = 0; i < mean.inner; i++)
                ref_put(type, args->dx, (o * mean.count + k) * mean.inner + i,
                        ref_get(type, args->dy, o * mean.inner + i) /
                            (double)mean.count);
    return ERR_OK;
}

const op_kernel_t ref_mean_kernel = {
    .open = ref_mean_open,
    .forward = ref_mean_forward,
    .backward = ref_mean_backward,
};
