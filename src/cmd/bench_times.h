/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a benchmark makes of its times. */
#ifndef CDDP_CMD_BENCH_TIMES_H
#define CDDP_CMD_BENCH_TIMES_H

#include <stddef.h>

typedef struct bench_times { /* seconds */
    double min, median, p95, p99;
} bench_times_t;

/* Of [count] > 0 times, which are sorted. */
bench_times_t bench_times(double *times, size_t count);

#endif
