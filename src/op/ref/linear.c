/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: y[n,o] = b[o] + sum_f w[o,f] x[n,f]
 *   dx[n,f] = sum_o w[o,f] dy[n,o]
 *   dw[o,f] = sum_n dy[n,o] x[n,f]
 *   db[o]   = sum_n dy[n,o]
 * With an activation f, h is the sum above and y = f(h). The workspace keeps h,
 * and dy f'(h) takes the place of dy.
 */
#include "op/op_geometry.h"
#include "op/ref/ref.h"

static bool ref_has_activation(const op_t *op)
{
    return op->config.activation != OP_NONE;
}

static err_code_t ref_linear_open(op_t *op, err_t *err)
{
    (void)err;
    if (ref_has_activation(op) && op->config.training)
        op->workspace_bytes = op->out.bytes;
    return ERR_OK;
}

/* The gradient of element [i] of the sum, before the activation. */
static double ref_linear_dy(const op_t *op, const op_args_t *args, int64_t i)
{
    const op_type_t type = op->config.in.type;
    const double dy = ref_get(type, args->dy, i);

    return ref_has_activation(op)
               ? dy * ref_slope(op->config.activation,
                                ref_get(type, args->workspace, i),
                                op->config.alpha)
               : dy;
}

static err_code_t ref_linear_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t N = op_linear_rows(&op->config), O = op->config.out;
    int64_t F = op_linear_features(&op->config);
    const void *x = args->x, *w = args->params[0], *b = args->params[1];

    (void)err;
    for (int64_t n = 0; n < N; n++)
        for (int64_t o = 0; o < O; o++) {
            double sum = op->config.bias ? ref_get(type, b, o) : 0;

            for (int64_t f = 0; f < F; f++)
                sum +=
                    ref_factor(op, w, o * F + f) * ref_factor(op, x, n * F + f);
            if (ref_has_activation(op) && op->config.training)
                ref_put(type, args->workspace, n * O + o, sum);
            if (ref_has_activation(op))
                sum = ref_activation(op->config.activation, sum,
                                     op->config.alpha);
            ref_put(type, args->y, n * O + o, sum);
        }
    return ERR_OK;
}

static void ref_linear_backward_data(op_t *op, const op_args_t *args)
{
    op_type_t type = op->config.in.type;
    int64_t N = op_linear_rows(&op->config), O = op->config.out;
    int64_t F = op_linear_features(&op->config);

    for (int64_t n = 0; n < N; n++)
        for (int64_t f = 0; f < F; f++) {
            double sum = 0;

            for (int64_t o = 0; o < O; o++)
                sum += ref_factor(op, args->params[0], o * F + f) *
                       ref_round(op, ref_linear_dy(op, args, n * O + o));
            ref_put(type, args->dx, n * F + f, sum);
        }
}

static void ref_linear_backward_params(op_t *op, const op_args_t *args)
{
    op_type_t type = op->config.in.type;
    int64_t N = op_linear_rows(&op->config), O = op->config.out;
    int64_t F = op_linear_features(&op->config);

    for (int64_t o = 0; o < O; o++) {
        double bias = 0;

        for (int64_t f = 0; f < F; f++) {
            double sum = 0;

            for (int64_t n = 0; n < N; n++)
                sum += ref_round(op, ref_linear_dy(op, args, n * O + o)) *
                       ref_factor(op, args->x, n * F + f);
            ref_put(type, args->dparams[0], o * F + f, sum);
        }
        for (int64_t n = 0; n < N; n++)
            bias += ref_linear_dy(op, args, n * O + o);
        if (op->config.bias)
            ref_put(type, args->dparams[1], o, bias);
    }
}

static err_code_t ref_linear_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    ref_linear_backward_params(op, args);
    if (op->config.need_dx)
        ref_linear_backward_data(op, args);
    return ERR_OK;
}

const op_kernel_t ref_linear_kernel = {
    .open = ref_linear_open,
    .forward = ref_linear_forward,
    .backward = ref_linear_backward,
};
