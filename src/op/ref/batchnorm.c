/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * batchnorm: with M = N * space elements in each channel,
 *   mean = sum x / M,  var = sum (x - mean)^2 / M      (training)
 *   mean, var = the running statistics       (evaluation; norm.frozen)
 *   xhat = (x - mean) / sqrt(var + epsilon),  y = gamma * xhat + beta
 *   dbeta = sum dy,  dgamma = sum dy * xhat
 *   dx = gamma / sqrt(var + epsilon) * (dy - (dbeta + xhat * dgamma) / M)
 * With norm.frozen mean and var are constants:
 *   dx = gamma / sqrt(var + epsilon) * dy
 * With norm.bare gamma is 1 and beta 0. If there is another input, it is
 * added to y, and its gradient is dy. With relu, y is then max(0, y), and dy is
 * replaced by 0 where y is not above 0. The workspace keeps mean and
 * 1/sqrt(var + epsilon), double [2C].
 */
#include <math.h>

#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_batchnorm_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_y = op->config.relu;
    if (op->config.training)
        op->workspace_bytes =
            2 * (size_t)op->config.in.dims[1] * sizeof(double);
    return ERR_OK;
}

/* Index in x of element [i] (0 .. M-1) of channel [c]. */
static int64_t ref_batchnorm_index(const op_desc_t *in, int64_t c, int64_t i)
{
    int64_t space = op_desc_space(in);

    return (i / space * in->dims[1] + c) * space + i % space;
}

/* Sum over channel [c] of (x - centre)^power. */
static double ref_batchnorm_sum(const op_desc_t *in, const void *x, int64_t c,
                                double centre, int power)
{
    int64_t M = in->dims[0] * op_desc_space(in);
    double sum = 0;

    for (int64_t i = 0; i < M; i++) {
        double d = ref_get(in->type, x, ref_batchnorm_index(in, c, i)) - centre;

        sum += power == 1 ? d : d * d;
    }
    return sum;
}

static void ref_batchnorm_statistics(const op_t *op, const op_args_t *args,
                                     int64_t c, double *mean, double *inverse)
{
    const op_desc_t *in = &op->config.in;
    double M = (double)(in->dims[0] * op_desc_space(in));
    double var;

    if (op->config.training && !op->config.norm.frozen) {
        *mean = ref_batchnorm_sum(in, args->x, c, 0, 1) / M;
        var = ref_batchnorm_sum(in, args->x, c, *mean, 2) / M;
    } else {
        *mean = (double)args->running_mean[c];
        var = (double)args->running_var[c];
    }
    *inverse = 1 / sqrt(var + op->config.epsilon);
}

static err_code_t ref_batchnorm_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1], M = in->dims[0] * op_desc_space(in);
    double *kept = args->workspace;

    (void)err;
    for (int64_t c = 0; c < C; c++) {
        double gamma = ref_affine(op, args, 0, c);
        double beta = ref_affine(op, args, 1, c);
        double mean, inverse;

        ref_batchnorm_statistics(op, args, c, &mean, &inverse);
        if (op->config.training && !op->config.norm.frozen) {
            args->moments[c] = ref_batchnorm_sum(in, args->x, c, 0, 1);
            args->moments[C + c] = ref_batchnorm_sum(in, args->x, c, 0, 2);
        }
        if (op->config.training) {
            kept[c] = mean;
            kept[C + c] = inverse;
        }
        for (int64_t i = 0; i < M; i++) {
            int64_t at = ref_batchnorm_index(in, c, i);
            double xhat = (ref_get(in->type, args->x, at) - mean) * inverse;
            double y = gamma * xhat + beta;

            if (op->config.others > 0)
                y += ref_get(in->type, args->other[0], at);
            ref_put(in->type, args->y, at, op->config.relu && y < 0 ? 0 : y);
        }
    }
    return ERR_OK;
}

/* dy at element [at]; with relu, 0 where y is not above 0. */
static double ref_batchnorm_dy(const op_t *op, const op_args_t *args,
                               int64_t at)
{
    const op_type_t type = op->config.in.type;

    if (op->config.relu && !(ref_get(type, args->y, at) > 0))
        return 0;
    return ref_get(type, args->dy, at);
}

static void ref_batchnorm_backward_channel(op_t *op, const op_args_t *args,
                                           int64_t c)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1], M = in->dims[0] * op_desc_space(in);
    const double *kept = args->workspace;
    double mean = kept[c], inverse = kept[C + c];
    double gamma = ref_affine(op, args, 0, c);
    double dgamma = 0, dbeta = 0;

    for (int64_t i = 0; i < M; i++) {
        int64_t at = ref_batchnorm_index(in, c, i);
        double dy = ref_batchnorm_dy(op, args, at);

        if (op->config.others > 0 && args->dother[0] != NULL)
            ref_put(in->type, args->dother[0], at, dy);
        dbeta += dy;
        dgamma += dy * (ref_get(in->type, args->x, at) - mean) * inverse;
    }
    if (!op->config.norm.bare) {
        ref_put(in->type, args->dparams[0], c, dgamma);
        ref_put(in->type, args->dparams[1], c, dbeta);
    }
    if (op->config.norm.frozen)
        dgamma = dbeta = 0;
    for (int64_t i = 0; op->config.need_dx && i < M; i++) {
        int64_t at = ref_batchnorm_index(in, c, i);
        double dy = ref_batchnorm_dy(op, args, at);
        double xhat = (ref_get(in->type, args->x, at) - mean) * inverse;

        ref_put(in->type, args->dx, at,
                gamma * inverse * (dy - (dbeta + xhat * dgamma) / (double)M));
    }
}

static err_code_t ref_batchnorm_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    (void)err;
    for (int64_t c = 0; c < op->config.in.dims[1]; c++)
        ref_batchnorm_backward_channel(op, args, c);
    return ERR_OK;
}

const op_kernel_t ref_batchnorm_kernel = {
    .open = ref_batchnorm_open,
    .forward = ref_batchnorm_forward,
    .backward = ref_batchnorm_backward,
};
