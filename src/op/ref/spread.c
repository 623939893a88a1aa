/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add and mul with broadcasting (op_spread_t): y is the sum or product of the
 * inputs' elements. The gradient of an input's element is the sum over all
 * elements of y that were computed from it. scratch has these sums in double.
 */
#include "op/op_desc.h"
#include "op/op_spread.h"
#include "op/ref/ref.h"

static err_code_t ref_spread_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = op->config.kind == OP_MUL_SPREAD;
    op->scratch_bytes = (size_t)op_desc_elems(&op->out) * sizeof(double);
    return ERR_OK;
}

/* Index of the element of input [k] from which element [i] of y is computed. */
static int64_t ref_spread_at(const op_spread_t *spread, int k, int64_t i)
{
    int64_t at = 0;

    for (int d = spread->ndim - 1; d >= 0; d--) {
        at += i % spread->dims[d] * spread->stride[k][d];
        i /= spread->dims[d];
    }
    return at;
}

static double ref_spread_get(const op_t *op, const op_args_t *args,
                             const op_spread_t *spread, int k, int64_t i)
{
    return ref_get(op->config.in.type, k == 0 ? args->x : args->other[k - 1],
                   ref_spread_at(spread, k, i));
}

static err_code_t ref_spread_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    op_spread_t spread = op_spread_of(&op->config);

    (void)err;
    for (int64_t i = 0; i < op_desc_elems(&op->out); i++) {
        double y = ref_spread_get(op, args, &spread, 0, i);

        for (int k = 1; k <= op->config.others; k++) {
            double next = ref_spread_get(op, args, &spread, k, i);

            y = op->config.kind == OP_ADD_SPREAD ? y + next : y * next;
        }
        ref_put(op->config.in.type, args->y, i, y);
    }
    return ERR_OK;
}

static void ref_spread_gradient(op_t *op, const op_args_t *args, int input,
                                const op_desc_t *desc, void *to)
{
    op_spread_t spread = op_spread_of(&op->config);
    op_type_t type = op->config.in.type;
    double *sums = args->scratch;

    for (int64_t i = 0; i < op_desc_elems(desc); i++)
        sums[i] = 0;
    for (int64_t i = 0; i < op_desc_elems(&op->out); i++) {
        double dy = ref_get(type, args->dy, i);

        for (int k = 0; k <= op->config.others; k++)
            if (k != input && op->config.kind == OP_MUL_SPREAD)
                dy *= ref_spread_get(op, args, &spread, k, i);
        sums[ref_spread_at(&spread, input, i)] += dy;
    }
    for (int64_t i = 0; i < op_desc_elems(desc); i++)
        ref_put(type, to, i, sums[i]);
}

static err_code_t ref_spread_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_spread_gradient(op, args, 0, &op->config.in, args->dx);
    for (int k = 0; k < op->config.others; k++)
        if (args->dother[k] != NULL)
            ref_spread_gradient(op, args, k + 1, &op->config.other[k],
                                args->dother[k]);
    return ERR_OK;
}

const op_kernel_t ref_spread_kernel = {
    .open = ref_spread_open,
    .forward = ref_spread_forward,
    .backward = ref_spread_backward,
};
