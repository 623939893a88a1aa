/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * adaptive_avgpool: along a dimension of I elements in x and O in y, output o
 * is the mean of the inputs floor(o I / O) to ceil((o+1) I / O) - 1. In dx each
 * element of the window gets dy / (elements of the window).
 *
 * adaptive_maxpool takes the largest element of each window: the first of equal
 * ones, and NaN before all numbers. The workspace keeps its spatial index
 * (int64), to which dy is added in dx.
 */
#include "op/op_desc.h"
#include "op/ref/ref.h"

/* Is spatial position [i] of x in window [o]? *count: number of elements of the
 * window. */
static bool ref_adaptive_holds(const op_t *op, int64_t i, int64_t o,
                               double *count)
{
    bool holds = true;

    *count = 1;
    for (int d = op->out.ndim - 1; d >= 2; d--) {
        int64_t I = op->config.in.dims[d], O = op->out.dims[d];
        int64_t from = o % O * I / O, to = ((o % O + 1) * I + O - 1) / O;

        holds = holds && i % I >= from && i % I < to;
        *count *= (double)(to - from);
        i /= I;
        o /= O;
    }
    return holds;
}

static err_code_t ref_adaptive_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

static err_code_t ref_adaptive_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t in = op_desc_space(&op->config.in), out = op_desc_space(&op->out);
    double count;

    (void)err;
    for (int64_t y = 0; y < op_desc_elems(&op->out); y++) {
        double sum = 0;

        for (int64_t i = 0; i < in; i++)
            if (ref_adaptive_holds(op, i, y % out, &count))
                sum += ref_get(type, args->x, y / out * in + i);
        ref_adaptive_holds(op, 0, y % out, &count);
        ref_put(type, args->y, y, sum / count);
    }
    return ERR_OK;
}

static err_code_t ref_adaptive_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t in = op_desc_space(&op->config.in), out = op_desc_space(&op->out);

    (void)err;
    for (int64_t x = 0; op->config.need_dx && x < op_desc_elems(&op->config.in);
         x++) {
        double sum = 0, count;

        for (int64_t o = 0; o < out; o++)
            if (ref_adaptive_holds(op, x % in, o, &count))
                sum += ref_get(type, args->dy, x / in * out + o) / count;
        ref_put(type, args->dx, x, sum);
    }
    return ERR_OK;
}

const op_kernel_t ref_adaptive_kernel = {
    .open = ref_adaptive_open,
    .forward = ref_adaptive_forward,
    .backward = ref_adaptive_backward,
};

/* ---- the largest --------------------------------------------------------- */

static err_code_t ref_adaptive_max_open(op_t *op, err_t *err)
{
    if (op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    return ref_adaptive_open(op, err);
}

static err_code_t ref_adaptive_max_forward(op_t *op, const op_args_t *args,
                                           err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t in = op_desc_space(&op->config.in), out = op_desc_space(&op->out);
    int64_t *winners = args->workspace;
    double count;

    (void)err;
    for (int64_t y = 0; y < op_desc_elems(&op->out); y++) {
        int64_t winner = -1;
        double best = 0;

        for (int64_t i = 0; i < in; i++) {
            double value = ref_get(type, args->x, y / out * in + i);

            if (ref_adaptive_holds(op, i, y % out, &count) &&
                (winner < 0 || (best == best && !(value <= best)))) {
                best = value;
                winner = i;
            }
        }
        ref_put(type, args->y, y, best);
        if (op->config.training)
            winners[y] = winner;
    }
    return ERR_OK;
}

static err_code_t ref_adaptive_max_backward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t in = op_desc_space(&op->config.in), out = op_desc_space(&op->out);
    const int64_t *winners = args->workspace;

    (void)err;
    for (int64_t x = 0; op->config.need_dx && x < op_desc_elems(&op->config.in);
         x++) {
        double sum = 0;

        for (int64_t y = x / in * out; y < (x / in + 1) * out; y++)
            sum += winners[y] == x % in ? ref_get(type, args->dy, y) : 0;
        ref_put(type, args->dx, x, sum);
    }
    return ERR_OK;
}

const op_kernel_t ref_adaptive_max_kernel = {
    .open = ref_adaptive_max_open,
    .forward = ref_adaptive_max_forward,
    .backward = ref_adaptive_max_backward,
};
