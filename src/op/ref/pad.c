/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* pad: adds elements before and after each spatial dimension of x. They are a
 * constant, or x mirrored at its edges (op_pad_source). dx is the sum of dy
 * over all copies of an element. */
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/ref/ref.h"

static err_code_t ref_pad_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Index of the element of x that is copied to element [at] of y; -1: the
 * constant. */
static int64_t ref_pad_from(const op_t *op, int64_t at)
{
    const op_desc_t *in = &op->config.in, *out = &op->out;
    int64_t source = 0, step = 1;

    for (int d = out->ndim - 1; d >= 0; d--) {
        int64_t index = at % out->dims[d];

        if (d >= 2)
            index = op_pad_source(&op->config, d - 2, index);
        if (index < 0)
            return -1;
        source += index * step;
        step *= in->dims[d];
        at /= out->dims[d];
    }
    return source;
}

static err_code_t ref_pad_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->out);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        int64_t source = ref_pad_from(op, i);

        ref_put(type, args->y, i,
                source < 0 ? op->config.pad.value
                           : ref_get(type, args->x, source));
    }
    return ERR_OK;
}

static err_code_t ref_pad_backward(op_t *op, const op_args_t *args, err_t *err)
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
        int64_t source = ref_pad_from(op, i);

        if (source >= 0)
            ref_put(type, args->dx, source,
                    ref_get(type, args->dx, source) +
                        ref_get(type, args->dy, i));
    }
    return ERR_OK;
}

const op_kernel_t ref_pad_kernel = {
    .open = ref_pad_open,
    .forward = ref_pad_forward,
    .backward = ref_pad_backward,
};
