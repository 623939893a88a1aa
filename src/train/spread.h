/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spread: the sums from which r2 of one output of a model is computed: squared
 * differences from the targets, the targets, and their squares. The latter two
 * are each a sum and its rounding error (compensated summation), so constant
 * targets have variance 0. All can be added over batches and ranks. Pure.
 */
#ifndef CDDP_TRAIN_SPREAD_H
#define CDDP_TRAIN_SPREAD_H

#define TRAIN_SPREAD_SUMS 5

/* Add output [x] for target [t]. */
void train_spread_add(double sums[TRAIN_SPREAD_SUMS], double x, double t);

/* r2 over [samples] samples, as scikit-learn: for constant targets 1 if the
 * outputs equal them, else 0. A variance within float32 rounding counts as 0.
 */
double train_spread_r2(const double sums[TRAIN_SPREAD_SUMS], double samples);

#endif
