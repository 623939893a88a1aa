/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add and mul with broadcasting (op_broadcast_t): y is the sum or product of
 * the inputs' elements. The gradient of an input's element is the sum over all
 * elements of y that were computed from it. scratch has these sums in double.
 */
#include "op/op_broadcast.h"
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_broadcast_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = op->config.kind == OP_MUL_BROADCAST;
    op->scratch_bytes = (size_t)op_desc_elems(&op->out) * sizeof(double);
    return ERR_OK;
}

/* Index of the element of input [k] from which element [i] of y is computed. */
static int64_t ref_broadcast_at(const op_broadcast_t *broadcast, int k,
                                int64_t i)
{
    int64_t at = 0;

    for (int d = broadcast->ndim - 1; d >= 0; d--) {
        at += i % broadcast->dims[d] * broadcast->stride[k][d];
        i /= broadcast->dims[d];
    }
    return at;
}

static double ref_broadcast_get(const op_t *op, const op_args_t *args,
                                const op_broadcast_t *broadcast, int k,
                                int64_t i)
{
    return ref_get(op->config.in.type, k == 0 ? args->x : args->other[k - 1],
                   ref_broadcast_at(broadcast, k, i));
}

static err_code_t ref_broadcast_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    op_broadcast_t broadcast = op_broadcast_of(&op->config);

    (void)err;
    for (int64_t i = 0; i < op_desc_elems(&op->out); i++) {
        double y = ref_broadcast_get(op, args, &broadcast, 0, i);

        for (int k = 1; k <= op->config.others; k++) {
            double next = ref_broadcast_get(op, args, &broadcast, k, i);

            y = op->config.kind == OP_ADD_BROADCAST ? y + next : y * next;
        }
        ref_put(op->config.in.type, args->y, i, y);
    }
    return ERR_OK;
}

static void ref_broadcast_gradient(op_t *op, const op_args_t *args, int input,
                                   const op_desc_t *desc, void *to)
{
    op_broadcast_t broadcast = op_broadcast_of(&op->config);
    op_type_t type = op->config.in.type;
    double *sums = args->scratch;

    for (int64_t i = 0; i < op_desc_elems(desc); i++)
        sums[i] = 0;
    for (int64_t i = 0; i < op_desc_elems(&op->out); i++) {
        double dy = ref_get(type, args->dy, i);

        for (int k = 0; k <= op->config.others; k++)
            if (k != input && op->config.kind == OP_MUL_BROADCAST)
                dy *= ref_broadcast_get(op, args, &broadcast, k, i);
        sums[ref_broadcast_at(&broadcast, input, i)] += dy;
    }
    for (int64_t i = 0; i < op_desc_elems(desc); i++)
        ref_put(type, to, i, sums[i]);
}

static err_code_t ref_broadcast_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_broadcast_gradient(op, args, 0, &op->config.in, args->dx);
    for (int k = 0; k < op->config.others; k++)
        if (args->dother[k] != NULL)
            ref_broadcast_gradient(op, args, k + 1, &op->config.other[k],
                                   args->dother[k]);
    return ERR_OK;
}

const op_kernel_t ref_broadcast_kernel = {
    .open = ref_broadcast_open,
    .forward = ref_broadcast_forward,
    .backward = ref_broadcast_backward,
};
