/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* upsample: every element is repeated along each spatial dimension (nearest
 * neighbour). The gradient of an element is the sum of dy over its copies. */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_upsample_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Index of the element of x that is copied to element [at] of y. */
static int64_t ref_upsample_source(const op_t *op, int64_t at)
{
    const op_desc_t *in = &op->config.in, *out = &op->out;
    int64_t source = 0, step = 1;

    for (int d = out->ndim - 1; d >= 0; d--) {
        int64_t index = at % out->dims[d];

        at /= out->dims[d];
        if (d >= 2)
            index /= op->config.view.dims[d - 2];
        source += index * step;
        step *= in->dims[d];
    }
    return source;
}

static err_code_t ref_upsample_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->out);

    (void)err;
    for (int64_t i = 0; i < count; i++)
        ref_put(type, args->y, i,
                ref_get(type, args->x, ref_upsample_source(op, i)));
    return ERR_OK;
}

static err_code_t ref_upsample_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t from = op_desc_elems(&op->out);
    int64_t to = op_desc_elems(&op->config.in);

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t i = 0; i < to; i++)
        ref_put(type, args->dx, i, 0);
    for (int64_t i = 0; i < from; i++) {
        int64_t source = ref_upsample_source(op, i);

        ref_put(type, args->dx, source,
                ref_get(type, args->dx, source) + ref_get(type, args->dy, i));
    }
    return ERR_OK;
}

const op_kernel_t ref_upsample_kernel = {
    .open = ref_upsample_open,
    .forward = ref_upsample_forward,
    .backward = ref_upsample_backward,
};
