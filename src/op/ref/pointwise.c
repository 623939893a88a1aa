/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Losses that are sums of f(x, t) over the elements; dx = scale * df/dx. Each
 * line has f, then df/dx, with d = x - t and the constant a (op_alpha):
 *   mae    |d|                               sign of d (0 at 0)
 *   huber  |d| <= a ? d^2 / 2 : a (|d| - a/2)   |d| <= a ? d : a sign of d
 *   bce    (1 - t) x + c log(1 + exp(-x))    c / (1 + exp(-x)) - w t
 *          with c = 1 + (w - 1) t, where w = a is the weight of t
 *   kl     t (log t - x), 0 where t is 0     -t
 *          if a is 1, t is a logarithm, and exp(t) replaces t
 */
#include <math.h>

#include "op/op_desc.h"
#include "op/op_loss.h"
#include "op/ref/ref.h"

static double ref_sign(double d)
{
    return d > 0 ? 1 : d < 0 ? -1 : d;
}

/* [p] is a probability, [log_p] its logarithm. */
static double ref_kl_value(double x, double p, double log_p)
{
    return p == 0 ? 0 * x : p * (log_p - x);
}

static double ref_pointwise_value(op_kind_t kind, double x, double t, double a)
{
    double d = x - t;

    switch ((int)kind) {
    case OP_MAE:
        return fabs(d);
    case OP_HUBER:
        return fabs(d) <= a ? d * d / 2 : a * (fabs(d) - a / 2);
    case OP_BCE: /* in a form that does not overflow */
        return (1 - t) * x + (1 + (a - 1) * t) *
                                 (log1p(exp(-fabs(x))) + (x < 0 ? -x : 0 * x));
    default:
        return a == 0 ? ref_kl_value(x, t, log(t)) : ref_kl_value(x, exp(t), t);
    }
}

static double ref_pointwise_slope(op_kind_t kind, double x, double t, double a)
{
    double d = x - t;

    switch ((int)kind) {
    case OP_MAE:
        return ref_sign(d);
    case OP_HUBER:
        return fabs(d) <= a ? d : a * ref_sign(d);
    case OP_BCE:
        return (1 + (a - 1) * t) / (1 + exp(-x)) - a * t;
    default:
        return a == 0 ? -t : -exp(t);
    }
}

static err_code_t ref_pointwise_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);
    double loss = 0;

    (void)err;
    for (int64_t i = 0; i < count; i++)
        loss += ref_sample_weight(args, i / sample) *
                ref_pointwise_value(op->config.kind, ref_get(type, args->x, i),
                                    ref_get(type, args->target, i),
                                    op_alpha(&op->config, i));
    *args->loss_sum = loss;
    return ERR_OK;
}

static err_code_t ref_pointwise_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t sample = op_desc_sample(&op->config.in);

    (void)err;
    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    for (int64_t i = 0; i < count; i++)
        ref_put(type, args->dx, i,
                ref_sample_weight(args, i / sample) * op_loss_scale(args) *
                    ref_pointwise_slope(op->config.kind,
                                        ref_get(type, args->x, i),
                                        ref_get(type, args->target, i),
                                        op_alpha(&op->config, i)));
    return ERR_OK;
}

const op_kernel_t ref_pointwise_kernel = {
    .forward = ref_pointwise_forward,
    .backward = ref_pointwise_backward,
};
