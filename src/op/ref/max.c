/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* max over neighbouring dimensions: x is [outer, count, inner], y is [outer,
 * inner]. The first of equal values is the maximum, and NaN comes before all
 * numbers. The workspace keeps the index (int64, below count) of each maximum,
 * to which dy is copied in dx. */
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/ref/ref.h"

static err_code_t ref_max_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_max_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t r = op_reduce_of(&op->config);
    int64_t *winners = args->workspace;

    (void)err;
    for (int64_t at = 0; at < r.outer * r.inner; at++) {
        int64_t first = at / r.inner * r.count * r.inner + at % r.inner;
        double best = ref_get(type, args->x, first);
        int64_t winner = 0;

        for (int64_t k = 1; k < r.count; k++) {
            double value = ref_get(type, args->x, first + k * r.inner);

            if (best == best && !(value <= best)) {
                best = value;
                winner = k;
            }
        }
        ref_put(type, args->y, at, best);
        if (op->config.training)
            winners[at] = winner;
    }
    return ERR_OK;
}

static err_code_t ref_max_backward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    op_reduce_t r = op_reduce_of(&op->config);
    const int64_t *winners = args->workspace;

    (void)err;
    for (int64_t i = 0; op->config.need_dx && i < r.outer * r.count * r.inner;
         i++) {
        int64_t at = i / (r.count * r.inner) * r.inner + i % r.inner;
        bool won = winners[at] == i / r.inner % r.count;

        ref_put(type, args->dx, i, won ? ref_get(type, args->dy, at) : 0);
    }
    return ERR_OK;
}

const op_kernel_t ref_max_kernel = {
    .open = ref_max_open,
    .forward = ref_max_forward,
    .backward = ref_max_backward,
};
