/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The gradients of an op compared with central differences of its own values,
 * of L = sum(dy * y), or of a loss L = scale * loss_sum. A gradient that
 * differs is an assertion of Criterion.
 */
#ifndef CDDP_TESTS_OP_OP_DIFFERENCES_H
#define CDDP_TESTS_OP_OP_DIFFERENCES_H

#include "op_rig.h"

typedef struct op_differences {
    int tried; /* elements of each tensor, evenly spaced */
    double step;
    double tolerance; /* absolute, and relative to the difference */
    /* Error of L by rounding, relative to the sum of its absolute terms. If it
     * is not 0, so that the step must be large, a kink may lie within a step:
     * the gradient may then be any number between the slopes on both sides. */
    double rounding;
} op_differences_t;

/* For float32: two elements of each tensor, or three. */
extern const op_differences_t op_differences_float32;

/* Check the gradients of all inputs and parameters of [test] on the device
 * [on]. Cases of evaluation have none, and pass. */
void op_differences_check(const op_case_t *test, const op_rig_on_t *on,
                          const op_differences_t *limits);

#endif
