/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mean over neighbouring dimensions: x is [outer, count, inner], y [outer,
 * inner]; dx = dy / count. */
#include "op/ref/ref.h"

typedef struct ref_mean {
    int64_t outer, count, inner;
} ref_mean_t;

static ref_mean_t ref_mean_of(const op_t *op)
{
    const op_desc_t *in = &op->config.in;
    const op_view_t *view = &op->config.view;
    ref_mean_t mean = {1, 1, 1};

    for (int i = 0; i < in->ndim; i++) {
        if (i < view->axis)
            mean.outer *= in->dims[i];
        else if (i <= view->axis_last)
            mean.count *= in->dims[i];
        else
            mean.inner *= in->dims[i];
    }
    return mean;
}

static err_code_t ref_mean_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_mean_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    ref_mean_t mean = ref_mean_of(op);

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
    ref_mean_t mean = ref_mean_of(op);

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
