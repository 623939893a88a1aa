/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spread: what r2 keeps of each output of a model: the squared differences from
 * the targets, and these' sum and sum of squares, each as two numbers of which
 * the second holds what the first has lost: targets that never change must have
 * no variance. All of it can be added up over batches and ranks. Pure.
 */
#ifndef CDDP_TRAIN_SPREAD_H
#define CDDP_TRAIN_SPREAD_H

#define TRAIN_SPREAD_SUMS 5

/* Take in an answer [x] to a target [t]. */
void train_spread_add(double sums[TRAIN_SPREAD_SUMS], double x, double t);

/* r2 of [samples] of them, as scikit-learn: where targets never change 1 if
 * they are met, else 0. A variance that float32 cannot tell from none is none.
 */
double train_spread_r2(const double sums[TRAIN_SPREAD_SUMS], double samples);

#endif
