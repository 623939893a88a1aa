/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The losses, shared by the backends (op_classes.c): constants computed from
 * the options, and checks of targets and weights from the data. Pure
 * functions. */
#ifndef CDDP_OP_OP_LOSS_H
#define CDDP_OP_OP_LOSS_H

#include "op/op.h"

/* Constants of cross_entropy, see op_loss_t. The gradient of element k of a row
 * with target t is share p[k] - spread w[k] - (k == t) hit w[t], with share =
 * hit w[t] + spread sum w. */
typedef struct op_smooth {
    double hit;    /* 1 - smoothing */
    double spread; /* smoothing / K */
    double sum;    /* sum of all class weights */
} op_smooth_t;

op_smooth_t op_smooth_of(const op_config_t *config);

/* The constant of element [index] of an elementwise loss: config.alpha or, for
 * bce, the weight of the term of t. */
double op_alpha(const op_config_t *config, int64_t index);

/* The factor of the gradient in this step. */
static inline double op_loss_scale(const op_args_t *args)
{
    return args->step->scales[args->loss];
}

/* Is the loss left out in this step? Then dx is filled with zeros. */
bool op_loss_left_out(const op_t *op, const op_args_t *args);

/* Check that every target of a cross entropy with [config] is a class or
 * ignored. ERR_DATA names the first target that is not. */
err_code_t op_check_target(const op_config_t *config, const int64_t *target,
                           err_t *err);

/* Check that every weight of a sample (NULL: none) is finite and not below 0.
 * ERR_DATA names the first weight that is not. */
err_code_t op_check_weights(const op_config_t *config, const float *weights,
                            err_t *err);

#endif
