/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spread: the sums from which r2 of one output of a model is computed: the
 * squared differences from the targets, the targets, and the squared targets.
 * The sums of targets and of their squares each consist of a sum and its
 * rounding error (compensated summation), so the variance of constant targets
 * is 0. All sums can be added over batches and ranks. Pure.
 */
#ifndef CDDP_TRAIN_SPREAD_H
#define CDDP_TRAIN_SPREAD_H

#define TRAIN_SPREAD_SUMS 5

/* Add output [x] with target [t]. */
void train_spread_add(double sums[TRAIN_SPREAD_SUMS], double x, double t);

/* r2 over [samples] samples, as in scikit-learn: if all targets are equal, 1 if
 * the outputs equal them and 0 otherwise. A variance within the rounding of
 * float32 counts as 0. */
double train_spread_r2(const double sums[TRAIN_SPREAD_SUMS], double samples);

#endif
