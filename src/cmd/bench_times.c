/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_times.h"

#include <stdlib.h>

#include "base/numeric.h"

bench_times_t bench_times(double *times, size_t count)
{
    bench_times_t found;

    qsort(times, count, sizeof *times, numeric_compare);
    found.min = times[0];
    found.median = (times[(count - 1) / 2] + times[count / 2]) / 2;
    found.p95 = times[(count * 95 + 99) / 100 - 1];
    found.p99 = times[(count * 99 + 99) / 100 - 1];
    return found;
}

err_code_t bench_times_slowest(comm_group_t *group, double *times, size_t count,
                               bench_times_t *out, err_t *err)
{
    err_code_t rc =
        comm_allreduce(group, times, count, COMM_FLOAT64, COMM_MAX, err);

    if (rc == ERR_OK)
        *out = bench_times(times, count);
    return rc;
}
