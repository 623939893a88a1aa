/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * syncbatchnorm: batchnorm (batchnorm.c explains the symbols) over the samples
 * of all ranks that take part. args->reduce.small adds sums over the ranks:
 *   forward: sum x, sum x^2 [C] each, and M; then
 *     mean = sum x / M,  var = sum x^2 / M - mean^2
 *   backward: dbeta, dgamma [C] each
 * The totals of dbeta and dgamma are used for dx only. The gradients of beta
 * and gamma remain the rank's own sums, like those of any parameter. The
 * workspace keeps mean, 1/sqrt(var + epsilon), M and the sums of backward:
 * double [C], [C], 1, [2C].
 */
#include <math.h>

#include "op/op_desc.h"
#include "op/op_sync.h"
#include "op/ref/ref.h"

static err_code_t ref_sync_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training)
        op->workspace_bytes =
            (4 * (size_t)op->config.in.dims[1] + 1) * sizeof(double);
    return ERR_OK;
}

/* Index in x of element [i] (0 .. samples * space - 1) of channel [c]. */
static int64_t ref_sync_index(const op_desc_t *in, int64_t c, int64_t i)
{
    int64_t space = op_desc_space(in);

    return (i / space * in->dims[1] + c) * space + i % space;
}

static int64_t ref_sync_elems(const op_desc_t *in)
{
    return in->dims[0] * op_desc_space(in);
}

/* Write mean, 1/sqrt(var + epsilon) and M to [kept]. */
static err_code_t ref_sync_statistics(op_t *op, const op_args_t *args,
                                      double *kept, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1];
    err_code_t rc;

    for (int64_t c = 0; c < C; c++) {
        kept[c] = kept[C + c] = 0;
        for (int64_t i = 0; i < ref_sync_elems(in); i++) {
            double x = ref_get(in->type, args->x, ref_sync_index(in, c, i));

            kept[c] += x;
            kept[C + c] += x * x;
        }
        args->moments[c] = kept[c];
        args->moments[C + c] = kept[C + c];
    }
    kept[2 * C] = (double)ref_sync_elems(in);
    rc = op_reduce_small(args, kept, 2 * (size_t)C + 1, err);
    for (int64_t c = 0; c < C && rc == ERR_OK; c++)
        op_sync_moments(kept, C, c, op->config.epsilon);
    return rc;
}

static err_code_t ref_sync_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1];
    double *kept = args->workspace;
    err_code_t rc = ERR_OK;

    if (op->config.training)
        rc = ref_sync_statistics(op, args, kept, err);
    for (int64_t c = 0; c < C && rc == ERR_OK; c++) {
        double gamma = ref_affine(op, args, 0, c);
        double beta = ref_affine(op, args, 1, c);
        bool training = op->config.training;
        double mean = training ? kept[c] : (double)args->running_mean[c];
        double inverse =
            training
                ? kept[C + c]
                : 1 / sqrt((double)args->running_var[c] + op->config.epsilon);

        for (int64_t i = 0; i < ref_sync_elems(in); i++) {
            int64_t at = ref_sync_index(in, c, i);
            double xhat = (ref_get(in->type, args->x, at) - mean) * inverse;

            ref_put(in->type, args->y, at, gamma * xhat + beta);
        }
    }
    return rc;
}

static void ref_sync_gradient(op_t *op, const op_args_t *args, int64_t c,
                              const double *sums)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1];
    const double *kept = args->workspace;
    double gamma = ref_affine(op, args, 0, c), M = kept[2 * C];

    for (int64_t i = 0; i < ref_sync_elems(in); i++) {
        int64_t at = ref_sync_index(in, c, i);
        double dy = ref_get(in->type, args->dy, at);
        double xhat = (ref_get(in->type, args->x, at) - kept[c]) * kept[C + c];

        ref_put(in->type, args->dx, at,
                gamma * kept[C + c] *
                    (dy - (sums[c] + xhat * sums[C + c]) / M));
    }
}

static err_code_t ref_sync_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1];
    double *kept = args->workspace, *sums = kept + 2 * C + 1;
    err_code_t rc;

    for (int64_t c = 0; c < C; c++) {
        sums[c] = sums[C + c] = 0;
        for (int64_t i = 0; i < ref_sync_elems(in); i++) {
            int64_t at = ref_sync_index(in, c, i);
            double dy = ref_get(in->type, args->dy, at);

            sums[c] += dy;
            sums[C + c] +=
                dy * (ref_get(in->type, args->x, at) - kept[c]) * kept[C + c];
        }
        if (op->config.norm.bare)
            continue;
        ref_put(in->type, args->dparams[0], c, sums[C + c]);
        ref_put(in->type, args->dparams[1], c, sums[c]);
    }
    rc = op_reduce_small(args, sums, 2 * (size_t)C, err);
    for (int64_t c = 0; c < C && rc == ERR_OK && op->config.need_dx; c++)
        ref_sync_gradient(op, args, c, sums);
    return rc;
}

const op_kernel_t ref_syncbatchnorm_kernel = {
    .open = ref_sync_open,
    .forward = ref_sync_forward,
    .backward = ref_sync_backward,
};
