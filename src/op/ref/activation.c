/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Activations: y = f(x), dx = dy f'(x), element by element. For these, f' is
 * computed from y, so backward reads y, and y may overwrite x:
 *   leaky_relu  x > 0 ? x : a x              y > 0 ? 1 : a
 *   elu         x > 0 ? x : a (exp(x) - 1)   y > 0 ? 1 : y + a
 *   sigmoid     s(x) = 1 / (1 + exp(-x))     y (1 - y)
 *   tanh        tanh x                       1 - y^2
 *   scale       a x                          a
 * For these, f' is computed from x:
 *   gelu        x P(x), P the normal distribution function  P(x) + x P'(x)
 *   gelu_tanh   x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
 *   silu        x s(x)
 *   softplus    log(1 + exp(a x)) / a        s(a x)
 *   hardswish   x min(max(x + 3, 0), 6) / 6  0 up to -3, 1 from 3 on, and
 *                                            x / 3 + 1/2 in between
 */
#include <math.h>

#include "op/op_desc.h"
#include "op/ref/ref.h"

static bool ref_reads_y(op_kind_t kind)
{
    return kind == OP_LEAKY_RELU || kind == OP_ELU || kind == OP_SIGMOID ||
           kind == OP_TANH || kind == OP_SCALE;
}

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double ref_gelu_inner(double x)
{
    return 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

double ref_activation(op_kind_t kind, double x, double a)
{
    switch ((int)kind) {
    case OP_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case OP_ELU:
        return x > 0 ? x : a * expm1(x);
    case OP_SIGMOID:
        return ref_sigmoid(x);
    case OP_TANH:
        return tanh(x);
    case OP_SCALE:
        return a * x;
    case OP_GELU:
        return x * 0.5 * erfc(-x * M_SQRT1_2);
    case OP_GELU_TANH:
        return x * ref_sigmoid(ref_gelu_inner(x));
    case OP_SILU:
        return x * ref_sigmoid(x);
    case OP_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
    default: /* softplus, in a form that does not overflow */
        return (a * x > 0 ? x : 0 * x) + log1p(exp(-fabs(a * x))) / a;
    }
}

/* f', computed from [of], which is y or x (see above). */
double ref_slope(op_kind_t kind, double of, double a)
{
    double s;

    switch ((int)kind) {
    case OP_LEAKY_RELU:
        return of > 0 ? 1 : a;
    case OP_ELU:
        return of > 0 ? 1 : of + a;
    case OP_SIGMOID:
        return of * (1 - of);
    case OP_TANH:
        return 1 - of * of;
    case OP_SCALE:
        return a;
    case OP_GELU:
        return 0.5 * erfc(-of * M_SQRT1_2) +
               of * exp(-of * of / 2) / sqrt(2 * M_PI);
    case OP_GELU_TANH:
        s = ref_sigmoid(ref_gelu_inner(of));
        return s + of * s * (1 - s) * 2 * sqrt(2 / M_PI) *
                       (1 + 3 * 0.044715 * of * of);
    case OP_SILU:
        s = ref_sigmoid(of);
        return s + of * s * (1 - s);
    case OP_HARDSWISH:
        return of <= -3 ? 0 : of >= 3 ? 1 : of / 3 + 0.5;
    default:
        return ref_sigmoid(a * of);
    }
}

static err_code_t ref_activation_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_y = op->in_place = ref_reads_y(op->config.kind);
    op->reads_x = !op->reads_y;
    return ERR_OK;
}

static err_code_t ref_activation_forward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++)
        ref_put(type, args->y, i,
                ref_activation(op->config.kind, ref_get(type, args->x, i),
                               op->config.alpha));
    return ERR_OK;
}

static err_code_t ref_activation_backward(op_t *op, const op_args_t *args,
                                          err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    const void *of = op->reads_y ? args->y : args->x;

    (void)err;
    for (int64_t i = 0; op->config.need_dx && i < count; i++)
        ref_put(type, args->dx, i,
                ref_get(type, args->dy, i) * ref_slope(op->config.kind,
                                                       ref_get(type, of, i),
                                                       op->config.alpha));
    return ERR_OK;
}

const op_kernel_t ref_activation_kernel = {
    .open = ref_activation_open,
    .forward = ref_activation_forward,
    .backward = ref_activation_backward,
};
