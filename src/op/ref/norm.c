/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * layernorm, groupnorm, instancenorm: in each row of F elements (op_rows_t)
 *   mean = sum x / F,  var = sum (x - mean)^2 / F
 *   xhat = (x - mean) / sqrt(var + epsilon),  y = gamma * xhat + beta
 *   dbeta = sum dy,  dgamma = sum dy * xhat,
 *           over all elements that use the parameter
 *   dx = (g - sum g / F - xhat * sum (g * xhat) / F) / sqrt(var + epsilon),
 *        with g = gamma * dy
 * For rmsnorm mean = 0, and the terms sum g / F and beta are left out. The
 * workspace keeps mean and 1/sqrt(var + epsilon), double [rows,2].
 */
#include <math.h>

#include "op/op_geometry.h"
#include "op/ref/ref.h"

typedef struct ref_norm {
    op_type_t type;
    op_rows_t rows;
    bool centred; /* the mean is subtracted: all but rmsnorm */
} ref_norm_t;

static ref_norm_t ref_norm_of(const op_t *op)
{
    return (ref_norm_t){op->config.in.type, op_norm_rows(&op->config),
                        op->config.kind != OP_RMSNORM};
}

static err_code_t ref_norm_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training)
        op->workspace_bytes =
            2 * (size_t)op_norm_rows(&op->config).rows * sizeof(double);
    return ERR_OK;
}

/* Index of the parameter that element [i] of row [r] uses. */
static int64_t ref_norm_param(const op_rows_t *rows, int64_t r, int64_t i)
{
    return r % rows->groups * (rows->length / rows->space) + i / rows->space;
}

/* Compute mean and 1/sqrt(var + epsilon) of row [r]. */
static void ref_norm_moments(const ref_norm_t *norm, const op_t *op,
                             const void *x, int64_t r, double moments[2])
{
    int64_t F = norm->rows.length;
    double mean = 0, var = 0;

    for (int64_t i = 0; norm->centred && i < F; i++)
        mean += ref_get(norm->type, x, r * F + i) / (double)F;
    for (int64_t i = 0; i < F; i++) {
        double d = ref_get(norm->type, x, r * F + i) - mean;

        var += d * d / (double)F;
    }
    moments[0] = mean;
    moments[1] = 1 / sqrt(var + op->config.epsilon);
}

static double ref_norm_scale(const ref_norm_t *norm, const op_args_t *args,
                             int64_t param)
{
    return args->params[0] == NULL
               ? 1
               : ref_get(norm->type, args->params[0], param);
}

static err_code_t ref_norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_norm_t norm = ref_norm_of(op);
    int64_t F = norm.rows.length;

    (void)err;
    for (int64_t r = 0; r < norm.rows.rows; r++) {
        double moments[2];

        ref_norm_moments(&norm, op, args->x, r, moments);
        for (int64_t i = 0; i < F; i++) {
            int64_t p = ref_norm_param(&norm.rows, r, i);
            double x = ref_get(norm.type, args->x, r * F + i);
            double y =
                (x - moments[0]) * moments[1] * ref_norm_scale(&norm, args, p);

            if (args->params[1] != NULL)
                y += ref_get(norm.type, args->params[1], p);
            ref_put(norm.type, args->y, r * F + i, y);
        }
        for (int k = 0; op->config.training && k < 2; k++)
            ((double *)args->workspace)[2 * r + k] = moments[k];
    }
    return ERR_OK;
}

static void ref_norm_backward_row(const ref_norm_t *norm, const op_args_t *args,
                                  int64_t r)
{
    const double *moments = (const double *)args->workspace + 2 * r;
    int64_t F = norm->rows.length;
    double sum = 0, product = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < F; i++) {
            int64_t p = ref_norm_param(&norm->rows, r, i);
            double x = ref_get(norm->type, args->x, r * F + i);
            double hat = (x - moments[0]) * moments[1];
            double g = ref_get(norm->type, args->dy, r * F + i) *
                       ref_norm_scale(norm, args, p);

            if (pass == 0) {
                sum += norm->centred ? g / (double)F : 0;
                product += g * hat / (double)F;
            } else {
                ref_put(norm->type, args->dx, r * F + i,
                        (g - sum - hat * product) * moments[1]);
            }
        }
}

/* Compute dgamma and dbeta of parameter [p]. */
static void ref_norm_backward_param(const ref_norm_t *norm,
                                    const op_args_t *args, int64_t p)
{
    const double *moments = args->workspace;
    int64_t F = norm->rows.length, S = norm->rows.space;
    double dgamma = 0, dbeta = 0;

    for (int64_t r = p / (F / S); r < norm->rows.rows; r += norm->rows.groups)
        for (int64_t s = 0; s < S; s++) {
            int64_t at = r * F + p % (F / S) * S + s;
            double dy = ref_get(norm->type, args->dy, at);
            double x = ref_get(norm->type, args->x, at);

            dbeta += dy;
            dgamma += dy * (x - moments[2 * r]) * moments[2 * r + 1];
        }
    if (args->dparams[0] != NULL)
        ref_put(norm->type, args->dparams[0], p, dgamma);
    if (args->dparams[1] != NULL)
        ref_put(norm->type, args->dparams[1], p, dbeta);
}

static err_code_t ref_norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_norm_t norm = ref_norm_of(op);
    const op_rows_t *rows = &norm.rows;
    int64_t params = rows->groups * (rows->length / rows->space);

    (void)err;
    for (int64_t r = 0; op->config.need_dx && r < rows->rows; r++)
        ref_norm_backward_row(&norm, args, r);
    for (int64_t p = 0; op->config.norm.affine && p < params; p++)
        ref_norm_backward_param(&norm, args, p);
    return ERR_OK;
}

const op_kernel_t ref_norm_kernel = {
    .open = ref_norm_open,
    .forward = ref_norm_forward,
    .backward = ref_norm_backward,
};
