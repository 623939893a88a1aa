/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the backends share of the losses (op_classes.c): what the options come
 * down to, and the checks of what comes from the data. Pure functions. */
#ifndef CDDP_OP_OP_LOSS_H
#define CDDP_OP_OP_LOSS_H

#include "op/op.h"

/* What cross_entropy computes from its options: see op_loss_t. The gradient of
 * a row is share p[k] - spread w[k] - (k == t) hit w[t], with share = hit w[t]
 * + spread sum w. */
typedef struct op_smooth {
    double hit;    /* 1 - smoothing */
    double spread; /* smoothing / K */
    double sum;    /* of all weights */
} op_smooth_t;

op_smooth_t op_smooth_of(const op_config_t *config);

/* Of element [index] of a loss of elements: alpha; bce: the weight of t. */
double op_alpha(const op_config_t *config, int64_t index);

/* Is every target of a cross entropy a class, or ignored? ERR_DATA names the
 * first that is not. */
err_code_t op_check_target(const op_t *op, const op_args_t *args, err_t *err);

/* Is every weight of a sample a number, and not below 0? ERR_DATA names the
 * first that is not. */
err_code_t op_check_weights(const op_t *op, const op_args_t *args, err_t *err);

#endif
