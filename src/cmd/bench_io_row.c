/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Other work on the machine slows down both measurements of a round, so the
 * ratios within rounds differ less than the times do. Every second round begins
 * with the limit, so that neither profits from being the second one. */
#include "cmd/bench_io_row.h"

#include <stdio.h>

#include "base/mem.h"
#include "cmd/bench_times.h"

void bench_io_header_print(bool csv)
{
    if (csv)
        printf("what,layout,cache,threads,bytes,rounds,MBps,limit_MBps,ratio,"
               "ratio_low,ratio_high,limit\n");
    else
        printf("%-5s %-10s %-5s %7s %12s %6s %9s %10s %6s %9s %10s %s\n",
               "what", "layout", "cache", "threads", "bytes", "rounds", "MB/s",
               "limit MB/s", "ratio", "ratio low", "ratio high", "limit");
}

/* Sorts all times. */
static void row_print(const bench_io_args_t *args, const bench_io_row_t *row,
                      double *ours, double *limits, double *ratios)
{
    const size_t rounds = (size_t)args->rounds;
    const double megabytes = (double)row->bytes * 1e-6;
    const double our_time = bench_times(ours, rounds).median;
    const double limit_time = bench_times(limits, rounds).median;
    const bench_times_t ratio = bench_times(ratios, rounds);

    printf(
        args->csv ? "%s,%s,%s,%d,%zu,%zu,%.1f,%.1f,%.3f,%.3f,%.3f,%s\n"
                  : "%-5s %-10s %-5s %7d %12zu %6zu %9.1f %10.1f %6.3f %9.3f "
                    "%10.3f %s\n",
        bench_io_what_name(args->what), row->layout, row->cache, args->threads,
        row->bytes, rounds, megabytes / our_time, megabytes / limit_time,
        ratio.median, ratio.min, ratios[rounds - 1], row->limit);
    fflush(stdout);
}

static err_code_t round_run(const bench_io_row_t *row, bool limit_first,
                            double *ours, double *limit, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (limit_first)
        rc = row->limit_of(row->context, limit, err);
    if (rc == ERR_OK)
        rc = row->ours(row->context, ours, err);
    if (rc == ERR_OK && !limit_first)
        rc = row->limit_of(row->context, limit, err);
    return rc;
}

err_code_t bench_io_row_run(const bench_io_args_t *args,
                            const bench_io_row_t *row, err_t *err)
{
    const size_t rounds = (size_t)args->rounds;
    double *ours = NULL, *limits, *ratios;
    err_code_t rc = mem_new(double, 3 * rounds, "times", &ours, err);

    if (rc != ERR_OK)
        return rc;
    limits = ours + rounds;
    ratios = limits + rounds;
    for (size_t i = 0; rc == ERR_OK && i < rounds; i++) {
        rc = round_run(row, i % 2 == 1, &ours[i], &limits[i], err);
        if (rc == ERR_OK)
            ratios[i] = limits[i] / ours[i];
    }
    if (rc == ERR_OK)
        row_print(args, row, ours, limits, ratios);
    mem_free(ours);
    return rc;
}
