/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Functions with which the programs beside cddp-bench allreduce measure times.
 * They repeat calls as often as it does, and report the median over rounds of
 * the slowest rank's time, so that results are comparable. For single-file
 * programs that allreduce-peers compiles.
 */
#ifndef CDDP_TESTS_BENCH_PROBE_H
#define CDDP_TESTS_BENCH_PROBE_H

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define PROBE_ROUNDS_MAX 2000
#define PROBE_ROUNDS_MIN 15
/* approximate bytes per size */
#define PROBE_ROUNDS_BYTES ((size_t)512 << 20)

/* Time in seconds from an arbitrary start. */
static double probe_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* How often to time a call of [bytes] bytes; [asked] is the user's wish, 0:
 * none. At most PROBE_ROUNDS_MAX. */
static size_t probe_rounds(size_t bytes, size_t asked)
{
    size_t rounds = PROBE_ROUNDS_BYTES / bytes;

    rounds = rounds > PROBE_ROUNDS_MAX ? PROBE_ROUNDS_MAX : rounds;
    rounds = rounds < PROBE_ROUNDS_MIN ? PROBE_ROUNDS_MIN : rounds;
    return asked > 0 && asked < PROBE_ROUNDS_MAX ? asked : rounds;
}

static int probe_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over [rounds] rounds of the slowest rank's time. All ranks call it
 * with their own [times], which are overwritten. */
static double probe_median(double *times, size_t rounds)
{
    MPI_Allreduce(MPI_IN_PLACE, times, (int)rounds, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    qsort(times, rounds, sizeof *times, probe_compare);
    return (times[(rounds - 1) / 2] + times[rounds / 2]) / 2;
}

/* The next size to measure after [bytes], at most [largest]; 0: [bytes] was the
 * last. */
static size_t probe_next(size_t bytes, size_t largest)
{
    return bytes >= largest ? 0 : bytes > largest / 4 ? largest : bytes * 4;
}

#endif
