/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy of softmax, with class weights and label smoothing. The formula
 * is in op_config.h (op_loss_t), the positions of the classes of a row in op.h
 * (op_classes_t). The largest logit is subtracted before exp. correct counts
 * the rows, except ignored ones, whose largest logit is the target. If the
 * targets are probabilities, the right answer is the largest of them. The first
 * of equal numbers counts as the largest.
 */
#include <math.h>

#include "op/op_loss.h"
#include "op/ref/ref.h"

/* One row of x. */
typedef struct ref_row {
    const op_t *op;
    const void *x;
    op_classes_t at;
    int64_t row;
} ref_row_t;

static int64_t ref_row_place(const ref_row_t *row, int64_t k)
{
    const op_classes_t *at = &row->at;

    return (row->row / at->inner * at->classes + k) * at->inner +
           row->row % at->inner;
}

static double ref_row_get(const ref_row_t *row, int64_t k)
{
    return ref_get(row->op->config.in.type, row->x, ref_row_place(row, k));
}

static double ref_row_weight(const ref_row_t *row, int64_t k)
{
    const float *weights = row->op->config.loss.weights;

    return weights == NULL ? 1 : (double)weights[k];
}

/* First index of the largest logit. */
static int64_t ref_row_argmax(const ref_row_t *row)
{
    int64_t best = 0;

    for (int64_t k = 1; k < row->at.classes; k++)
        if (ref_row_get(row, k) > ref_row_get(row, best))
            best = k;
    return best;
}

/* log sum_k exp(x[k]) */
static double ref_row_log_sum(const ref_row_t *row, int64_t best)
{
    double top = ref_row_get(row, best), sum = 1; /* exp(0) of the best */

    for (int64_t k = 0; k < row->at.classes; k++)
        if (k != best)
            sum += exp(ref_row_get(row, k) - top);
    return log(sum) + top;
}

static double ref_row_loss(const ref_row_t *row, int64_t target, double log_sum)
{
    op_smooth_t smooth = op_smooth_of(&row->op->config);
    double loss = smooth.hit * ref_row_weight(row, target) *
                  (log_sum - ref_row_get(row, target));

    for (int64_t k = 0; smooth.spread > 0 && k < row->at.classes; k++)
        loss += smooth.spread * ref_row_weight(row, k) *
                (log_sum - ref_row_get(row, k));
    return loss;
}

/* Weight of the sample to which the row belongs. */
static double ref_row_sample(const ref_row_t *row, const op_args_t *args)
{
    int64_t rows = row->at.rows / row->op->config.in.dims[0];

    return ref_sample_weight(args, row->row / rows);
}

static bool ref_row_ignored(const op_t *op, int64_t target)
{
    return op->config.loss.ignore && target == op->config.loss.ignored;
}

static err_code_t ref_cross_entropy_forward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    ref_row_t row = {.op = op, .x = args->x, .at = op_classes_of(&op->config)};
    const int64_t *target = args->target;
    err_code_t rc = op_check_target(&op->config, args->target, err);
    double loss = 0;
    int64_t correct = 0;

    if (rc != ERR_OK)
        return rc;
    for (row.row = 0; row.row < row.at.rows; row.row++) {
        int64_t t = target[row.row], best;

        if (ref_row_ignored(op, t))
            continue;
        best = ref_row_argmax(&row);
        loss += ref_row_sample(&row, args) *
                ref_row_loss(&row, t, ref_row_log_sum(&row, best));
        correct += best == t;
    }
    *args->loss_sum = loss;
    *args->correct = (double)correct;
    return ERR_OK;
}

static void ref_row_backward(const ref_row_t *row, const op_args_t *args,
                             int64_t target)
{
    const op_config_t *config = &row->op->config;
    op_smooth_t smooth = op_smooth_of(config);
    bool ignored = ref_row_ignored(row->op, target);
    double hit = ignored ? 0 : smooth.hit * ref_row_weight(row, target);
    double share = hit + smooth.spread * smooth.sum;
    double log_sum = ref_row_log_sum(row, ref_row_argmax(row));
    double scale = op_loss_scale(args) * ref_row_sample(row, args);

    for (int64_t k = 0; k < row->at.classes; k++) {
        double p = exp(ref_row_get(row, k) - log_sum);
        double slope = share * p - smooth.spread * ref_row_weight(row, k) -
                       (k == target ? hit : 0);

        ref_put(config->in.type, args->dx, ref_row_place(row, k),
                ignored ? 0 : scale * slope);
    }
}

static err_code_t ref_cross_entropy_backward(op_t *op, const op_args_t *args,
                                             err_t *err)
{
    ref_row_t row = {.op = op, .x = args->x, .at = op_classes_of(&op->config)};
    const int64_t *target = args->target;

    (void)err;
    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    for (row.row = 0; row.row < row.at.rows; row.row++)
        ref_row_backward(&row, args, target[row.row]);
    return ERR_OK;
}

const op_kernel_t ref_cross_entropy_kernel = {
    .forward = ref_cross_entropy_forward,
    .backward = ref_cross_entropy_backward,
};

/* ---- targets that are probabilities -------------------------------------- */

/* The factor of -log p[k] in the loss of the row. */
static double ref_soft_share(const ref_row_t *row, const op_args_t *args,
                             int64_t k)
{
    op_smooth_t smooth = op_smooth_of(&row->op->config);
    double t =
        ref_get(row->op->config.in.type, args->target, ref_row_place(row, k));

    return (smooth.hit * t + smooth.spread) * ref_row_weight(row, k);
}

static err_code_t ref_soft_forward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_row_t row = {.op = op, .x = args->x, .at = op_classes_of(&op->config)};
    ref_row_t target = {
        .op = op, .x = args->target, .at = op_classes_of(&op->config)};
    double loss = 0;
    int64_t correct = 0;

    (void)err;
    for (row.row = 0; row.row < row.at.rows; row.row++) {
        int64_t best = ref_row_argmax(&row);
        double log_sum = ref_row_log_sum(&row, best);

        for (int64_t k = 0; k < row.at.classes; k++)
            loss += ref_row_sample(&row, args) * ref_soft_share(&row, args, k) *
                    (log_sum - ref_row_get(&row, k));
        target.row = row.row;
        correct += best == ref_row_argmax(&target);
    }
    *args->loss_sum = loss;
    *args->correct = (double)correct;
    return ERR_OK;
}

static err_code_t ref_soft_backward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_row_t row = {.op = op, .x = args->x, .at = op_classes_of(&op->config)};

    (void)err;
    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    for (row.row = 0; row.row < row.at.rows; row.row++) {
        double log_sum = ref_row_log_sum(&row, ref_row_argmax(&row));
        double scale = op_loss_scale(args) * ref_row_sample(&row, args),
               total = 0;

        for (int64_t k = 0; k < row.at.classes; k++)
            total += ref_soft_share(&row, args, k);
        for (int64_t k = 0; k < row.at.classes; k++)
            ref_put(op->config.in.type, args->dx, ref_row_place(&row, k),
                    scale * (total * exp(ref_row_get(&row, k) - log_sum) -
                             ref_soft_share(&row, args, k)));
    }
    return ERR_OK;
}

const op_kernel_t ref_cross_entropy_soft_kernel = {
    .forward = ref_soft_forward,
    .backward = ref_soft_backward,
};
