/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* upsample_linear: along each spatial dimension, an element of y is
 * interpolated between two elements of x (op_upsample_tap). So it is a weighted
 * sum of the 2, 4 or 8 elements of x around it. dx adds dy to them with the
 * same weights. */
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/ref/ref.h"

static err_code_t ref_upsample_linear_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Return the index in x of one of the elements around element [at] of y, and
 * its weight. Bit d of [corner] selects the second of the two elements along
 * spatial dimension d. */
static int64_t ref_corner(const op_t *op, int64_t at, int corner,
                          double *weight)
{
    const op_desc_t *in = &op->config.in, *out = &op->out;
    int64_t source = 0, step = 1;

    *weight = 1;
    for (int d = out->ndim - 1; d >= 0; d--) {
        int64_t index = at % out->dims[d];

        if (d >= 2) {
            op_tap_t tap = op_upsample_tap(index, op->config.view.dims[d - 2],
                                           in->dims[d]);
            bool second = (corner >> (d - 2) & 1) != 0;

            index = second ? tap.second : tap.first;
            *weight *= second ? tap.weight : 1 - tap.weight;
        }
        source += index * step;
        step *= in->dims[d];
        at /= out->dims[d];
    }
    return source;
}

static err_code_t ref_upsample_linear_forward(op_t *op, const op_args_t *args,
                                              err_t *err)
{
    op_type_t type = op->config.in.type;
    const int corners = 1 << (op->out.ndim - 2);
    int64_t count = op_desc_elems(&op->out);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0, weight;

        for (int c = 0; c < corners; c++) {
            int64_t source = ref_corner(op, i, c, &weight);

            sum += weight * ref_get(type, args->x, source);
        }
        ref_put(type, args->y, i, sum);
    }
    return ERR_OK;
}

static err_code_t ref_upsample_linear_backward(op_t *op, const op_args_t *args,
                                               err_t *err)
{
    op_type_t type = op->config.in.type;
    const int corners = 1 << (op->out.ndim - 2);
    int64_t from = op_desc_elems(&op->out);
    int64_t to = op_desc_elems(&op->config.in);

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t i = 0; i < to; i++)
        ref_put(type, args->dx, i, 0);
    for (int64_t i = 0; i < from; i++)
        for (int c = 0; c < corners; c++) {
            double weight;
            int64_t source = ref_corner(op, i, c, &weight);

            ref_put(type, args->dx, source,
                    ref_get(type, args->dx, source) +
                        weight * ref_get(type, args->dy, i));
        }
    return ERR_OK;
}

const op_kernel_t ref_upsample_linear_kernel = {
    .open = ref_upsample_linear_open,
    .forward = ref_upsample_linear_forward,
    .backward = ref_upsample_linear_backward,
};
