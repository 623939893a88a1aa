/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Statistics of the times of a benchmark. */
#ifndef CDDP_CMD_BENCH_TIMES_H
#define CDDP_CMD_BENCH_TIMES_H

#include <stddef.h>

#include "comm/comm.h"

typedef struct bench_times { /* seconds */
    double min, median, p95, p99;
} bench_times_t;

/* Minimum and quantiles of [count] > 0 [times], which are sorted in place. */
bench_times_t bench_times(double *times, size_t count);

/* The same for calls that all ranks of [group] have made: the time of a call is
 * that of the slowest rank. Every rank gets the same *out. Collective. */
err_code_t bench_times_slowest(comm_group_t *group, double *times, size_t count,
                               bench_times_t *out, err_t *err);

#endif
