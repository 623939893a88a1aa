/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/spread.h"

#include <math.h>

/* A variance smaller than NONE times the sum of squares is a rounding error. */
#define NONE 1e-13

static void sum_add(double sum[2], double value)
{
    const double all = sum[0] + value, part = all - sum[0];

    sum[1] += (sum[0] - (all - part)) + (value - part);
    sum[0] = all;
}

void train_spread_add(double sums[TRAIN_SPREAD_SUMS], double x, double t)
{
    sums[0] += (x - t) * (x - t);
    sum_add(sums + 1, t);
    sum_add(sums + 3, t * t);
}

double train_spread_r2(const double sums[TRAIN_SPREAD_SUMS], double samples)
{
    const double t = sums[1] + sums[2], squares = sums[3] + sums[4];
    const double spread = squares - t * t / samples;

    if (isnan(sums[0]) || isnan(spread))
        return (double)NAN;
    if (spread > NONE * squares)
        return 1 - sums[0] / spread;
    return sums[0] > 0 ? 0 : 1;
}
