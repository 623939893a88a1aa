/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy of softmax, x [N,K], target t [N]:
 *   loss = sum_n (log sum_k exp x[n,k]) - x[n,t]
 *   dx[n,k] = scale * (exp x[n,k] / sum_j exp x[n,j] - (k == t))
 * The largest logit is subtracted before exp. correct counts the rows whose
 * first largest logit is the target.
 */
#include <math.h>

#include "op/ref/ref.h"

/* First index of the largest logit of row [n]. */
static int64_t ref_cross_entropy_argmax(const op_t *op, const void *x,
                                        int64_t n)
{
    int64_t K = op->config.in.dims[1], best = 0;
    op_type_t type = op->config.in.type;

    for (int64_t k = 1; k < K; k++)
        if (ref_get(type, x, n * K + k) > ref_get(type, x, n * K + best))
            best = k;
    return best;
}

/* sum_k exp(x[n,k] - top) */
static double ref_cross_entropy_sum(const op_t *op, const void *x, int64_t n,
                                    double top)
{
    int64_t K = op->config.in.dims[1];
    double sum = 0;

    for (int64_t k = 0; k < K; k++)
        sum += exp(ref_get(op->config.in.type, x, n * K + k) - top);
    return sum;
}

static err_code_t ref_cross_entropy_forward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t N = op->config.in.dims[0], K = op->config.in.dims[1];
    const int64_t *target = args->target;
    err_code_t code = op_check_target(op, args, err);
    double loss = 0;
    int64_t correct = 0;

    if (code != ERR_OK)
        return code;
    for (int64_t n = 0; n < N; n++) {
        int64_t best = ref_cross_entropy_argmax(op, args->x, n);
        double top = ref_get(type, args->x, n * K + best);

        loss += log(ref_cross_entropy_sum(op, args->x, n, top)) + top -
                ref_get(type, args->x, n * K + target[n]);
        correct += best == target[n];
    }
    *args->loss_sum = loss;
    *args->correct = correct;
    return ERR_OK;
}

static err_code_t ref_cross_entropy_backward(op_t *op, const op_args_t *args,
                                             err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t N = op->config.in.dims[0], K = op->config.in.dims[1];
    const int64_t *target = args->target;

    (void)err;
    for (int64_t n = 0; op->config.need_dx && n < N; n++) {
        int64_t best = ref_cross_entropy_argmax(op, args->x, n);
        double top = ref_get(type, args->x, n * K + best);
        double sum = ref_cross_entropy_sum(op, args->x, n, top);

        for (int64_t k = 0; k < K; k++) {
            double p = exp(ref_get(type, args->x, n * K + k) - top) / sum;

            ref_put(type, args->dx, n * K + k,
                    args->scale * (p - (k == target[n])));
        }
    }
    return ERR_OK;
}

const op_kernel_t ref_cross_entropy_kernel = {
    .forward = ref_cross_entropy_forward,
    .backward = ref_cross_entropy_backward,
};
