/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * softmax and log_softmax along one dimension: x and y are [outer, count,
 * inner], and a row is the count elements of one outer and one inner index.
 * With t the largest element of a row and s = sum exp(x - t):
 *   softmax      y = exp(x - t) / s     dx = y (dy - sum y dy)
 *   log_softmax  y = x - t - log s      dx = dy - exp(y) sum dy
 */
#include <math.h>

#include "op/op_geometry.h"
#include "op/ref/ref.h"

static err_code_t ref_softmax_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_y = true;
    op->reads_x = false;
    return ERR_OK;
}

/* Index of the first element of row [row]. */
static int64_t ref_softmax_first(const op_reduce_t *r, int64_t row)
{
    return row / r->inner * r->count * r->inner + row % r->inner;
}

static err_code_t ref_softmax_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t r = op_reduce_of(&op->config);

    (void)err;
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t first = ref_softmax_first(&r, row);
        double top = ref_get(type, args->x, first), sum = 0;

        for (int64_t k = 1; k < r.count; k++)
            top = fmax(top, ref_get(type, args->x, first + k * r.inner));
        for (int64_t k = 0; k < r.count; k++)
            sum += exp(ref_get(type, args->x, first + k * r.inner) - top);
        for (int64_t k = 0; k < r.count; k++) {
            int64_t at = first + k * r.inner;
            double x = ref_get(type, args->x, at) - top;

            ref_put(type, args->y, at,
                    op->config.kind == OP_SOFTMAX ? exp(x) / sum
                                                  : x - log(sum));
        }
    }
    return ERR_OK;
}

static err_code_t ref_softmax_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t r = op_reduce_of(&op->config);
    const bool logs = op->config.kind == OP_LOG_SOFTMAX;

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t first = ref_softmax_first(&r, row);
        double sum = 0;

        for (int64_t k = 0; k < r.count; k++) {
            int64_t at = first + k * r.inner;

            sum += ref_get(type, args->dy, at) *
                   (logs ? 1 : ref_get(type, args->y, at));
        }
        for (int64_t k = 0; k < r.count; k++) {
            int64_t at = first + k * r.inner;
            double y = ref_get(type, args->y, at);
            double dy = ref_get(type, args->dy, at);

            ref_put(type, args->dx, at,
                    logs ? dy - exp(y) * sum : y * (dy - sum));
        }
    }
    return ERR_OK;
}

const op_kernel_t ref_softmax_kernel = {
    .open = ref_softmax_open,
    .forward = ref_softmax_forward,
    .backward = ref_softmax_backward,
};
