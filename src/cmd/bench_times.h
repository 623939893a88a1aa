/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Statistics of the times of a benchmark. */
#ifndef CDDP_CMD_BENCH_TIMES_H
#define CDDP_CMD_BENCH_TIMES_H

#include <stddef.h>

typedef struct bench_times { /* seconds */
    double min, median, p95, p99;
} bench_times_t;

/* Minimum and quantiles of [count] > 0 [times], which are sorted in place. */
bench_times_t bench_times(double *times, size_t count);

#endif
