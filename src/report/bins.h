/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * bins: a curve in bounded memory, however many steps it has. A bin holds
 * minimum, maximum and sum of the values of consecutive steps, so no peak is
 * lost. When a step lies behind the last bin, neighbours are merged: then
 * REPORT_BINS / 2 to REPORT_BINS bins cover the curve.
 */
#ifndef CDDP_REPORT_BINS_H
#define CDDP_REPORT_BINS_H

#include <stdint.h>

#define REPORT_BINS 1024

typedef struct report_bin {
    double least, most, sum;
    int64_t count; /* 0: no value */
} report_bin_t;

/* Initialize it with {0}. */
typedef struct report_bins {
    int shift; /* bin i holds steps i << shift to ((i + 1) << shift) - 1 */
    int used;  /* bins from 0 to the last one with a value */
    report_bin_t bins[REPORT_BINS];
} report_bins_t;

/* Add the finite [value] of [step] >= 0. */
void report_bins_add(report_bins_t *bins, int64_t step, double value);

/* Add the values of [from] to [to]; each may be empty. */
void report_bin_merge(report_bin_t *to, const report_bin_t *from);

/* Of a bin with values: their mean. */
double report_bin_mean(const report_bin_t *bin);

#endif
