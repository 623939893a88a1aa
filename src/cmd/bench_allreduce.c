/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * For each size: check the result of one all-reduce, time several all-reduces,
 * and time the memory bound in the same way. A time is measured from the end of
 * a barrier on; the slowest rank counts.
 *
 * To measure the memory bound, each of the R ranks reads and writes a buffer of
 * that size once, all at the same time, in place and with ordinary stores. An
 * all-reduce on one node needs at least these R reads and R writes. With
 * several nodes the network sets a bound, too (bench_link.h); the longer time
 * of the two counts.
 */
#include "cmd/bench_allreduce.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/bench_device.h"
#include "cmd/bench_link.h"
#include "cmd/bench_times.h"
#include "cmd/bench_tune.h"
#include "cmd/bench_value.h"
#include "comm/comm.h"
#include "comm/comm_plan.h"

#define TIMEOUT 60.0
#define WARM_UP 3

typedef struct bench {
    const bench_args_t *args;
    comm_group_t *group;
    comm_arena_t *arena;
    bench_link_t link;
    void *plain;
    float *data;
    double *times; /* [BENCH_ROUNDS_MAX] */
    int rank, size;
} bench_t;

typedef struct bench_row {
    size_t bytes;
    int ranks;
    const char *algorithm;
    comm_plan_t plan;
    bench_times_t times, bound;
    const char *bound_by; /* "memory" or "link" */
} bench_row_t;

/* ---- results ------------------------------------------------------------- */

static void header_print(bool csv)
{
    if (csv)
        printf("bytes,ranks,algorithm,min_us,median_us,p99_us,algbw_GBps,"
               "busbw_GBps,bound_us,bound_by,lanes,slices,segment_bytes\n");
    else
        printf("%10s %5s %-14s %11s %11s %11s %10s %10s %11s %-6s %5s %6s "
               "%9s\n",
               "bytes", "ranks", "algorithm", "min us", "median us", "p99 us",
               "algbw GB/s", "busbw GB/s", "bound us", "by", "lanes", "slices",
               "segment B");
}

static void row_print(const bench_row_t *row, bool csv)
{
    double algbw = (double)row->bytes / row->times.median * 1e-9;
    double busbw = algbw * 2 * (row->ranks - 1) / row->ranks;

    printf(
        csv ? "%zu,%d,%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%s,%d,%d,%zu\n"
            : "%10zu %5d %-14s %11.3f %11.3f %11.3f %10.3f %10.3f %11.3f %-6s "
              "%5d %6d %9zu\n",
        row->bytes, row->ranks, row->algorithm, row->times.min * 1e6,
        row->times.median * 1e6, row->times.p99 * 1e6, algbw, busbw,
        row->bound.median * 1e6, row->bound_by, row->plan.lanes,
        row->plan.slices, row->plan.segment * sizeof(float));
    fflush(stdout);
}

/* ---- one size ------------------------------------------------------------ */

static err_code_t result_check(bench_t *bench, size_t count, err_t *err)
{
    err_code_t rc;

    for (size_t i = 0; i < count; i++)
        bench->data[i] = bench_value(bench->rank, i);
    rc = comm_allreduce(bench->group, bench->data, count, COMM_FLOAT32,
                        COMM_SUM, err);
    return rc == ERR_OK ? bench_value_check(bench->data, count, bench->rank,
                                            bench->size, err)
                        : rc;
}

static void buffer_write(float *data, size_t count, float what)
{
    for (size_t i = 0; i < count; i++)
        data[i] = what;
}

/* Read and write each element once, 16 at a time, so that compilers use vector
 * instructions. */
static void buffer_touch(float *data, size_t count)
{
    size_t i = 0;

    for (; i + 16 <= count; i += 16)
        for (size_t j = 0; j < 16; j++)
            data[i + j] += 1.0f;
    for (; i < count; i++)
        data[i] += 1.0f;
}

static err_code_t call_reduce(bench_t *bench, size_t count, err_t *err)
{
    return comm_allreduce(bench->group, bench->data, count, COMM_FLOAT32,
                          COMM_SUM, err);
}

static err_code_t call_bound(bench_t *bench, size_t count, err_t *err)
{
    (void)err;
    buffer_touch(bench->data, count);
    return ERR_OK;
}

static err_code_t call_link(bench_t *bench, size_t count, err_t *err)
{
    return bench_link_run(&bench->link, count * sizeof(float), err);
}

static err_code_t calls_time(bench_t *bench, size_t count,
                             err_code_t (*call)(bench_t *, size_t, err_t *),
                             bench_times_t *out, err_t *err)
{
    size_t rounds = bench_args_rounds(bench->args, count * sizeof(float));
    err_code_t rc = ERR_OK;

    for (size_t i = 0; rc == ERR_OK && i < WARM_UP + rounds; i++) {
        double begin;

        buffer_write(bench->data, count, (float)(bench->rank + (int)i % 7));
        rc = comm_barrier(bench->group, err);
        begin = clock_now();
        if (rc == ERR_OK)
            rc = call(bench, count, err);
        if (i >= WARM_UP)
            bench->times[i - WARM_UP] = clock_now() - begin;
    }
    return rc == ERR_OK ? bench_times_slowest(bench->group, bench->times,
                                              rounds, out, err)
                        : rc;
}

static err_code_t bound_time(bench_t *bench, size_t count, bench_row_t *row,
                             err_t *err)
{
    bench_times_t link;
    err_code_t rc = calls_time(bench, count, call_bound, &row->bound, err);

    row->bound_by = "memory";
    if (rc != ERR_OK || bench->link.nodes == 1)
        return rc;
    rc = calls_time(bench, count, call_link, &link, err);
    if (rc == ERR_OK && link.median > row->bound.median) {
        row->bound = link;
        row->bound_by = "link";
    }
    return rc;
}

static err_code_t size_run(bench_t *bench, size_t bytes, err_t *err)
{
    size_t count = bytes / sizeof(float);
    bench_row_t row = {.bytes = bytes,
                       .ranks = bench->size,
                       .algorithm = comm_allreduce_name(
                           bench->group, bench->data, count, COMM_FLOAT32)};
    err_code_t rc = result_check(bench, count, err);

    comm_allreduce_plan(bench->group, bench->data, count, COMM_FLOAT32,
                        &row.plan);
    if (rc == ERR_OK)
        rc = calls_time(bench, count, call_reduce, &row.times, err);
    if (rc == ERR_OK)
        rc = bound_time(bench, count, &row, err);
    if (rc == ERR_OK && bench->rank == 0)
        row_print(&row, bench->args->csv);
    return rc;
}

/* ---- one rank ------------------------------------------------------------ */

static err_code_t bench_open(bench_t *bench, boot_t *boot, err_t *err)
{
    comm_config_t config = {.backend = bench->args->backend,
                            .timeout = TIMEOUT,
                            .table_path = bench->args->table};
    comm_oob_t oob = {.context = boot,
                      .rank = bench->rank,
                      .size = bench->size,
                      .exchange = boot_exchange_call};
    err_code_t rc;

    if (config.backend == NULL)
        config.backend = bench->args->local > 0 ? "threads" : "auto";
    rc = mem_new(double, BENCH_ROUNDS_MAX, "times", &bench->times, err);
    if (rc == ERR_OK)
        rc = comm_group_open(&config, &oob, &bench->group, err);
    if (rc == ERR_OK)
        rc = bench_link_open(bench->group, bench->args->largest, &bench->link,
                             err);
    if (rc != ERR_OK)
        return rc;
    if (bench->args->plain) {
        rc = mem_alloc(bench->args->largest, "buffer", &bench->plain, err);
        bench->data = bench->plain;
        return rc;
    }
    rc =
        comm_arena_open(bench->group, bench->args->largest, &bench->arena, err);
    if (rc == ERR_OK)
        bench->data = comm_arena_data(bench->arena);
    return rc;
}

err_code_t bench_allreduce(const bench_args_t *args, boot_t *boot, bool *lost,
                           err_t *err)
{
    bench_t bench = {
        .args = args, .rank = boot_rank(boot), .size = boot_size(boot)};
    err_code_t rc;

    log_rank_set(bench.rank);
    if (args->tune != NULL)
        return bench_tune(args, boot, err);
    if (args->on_device)
        return bench_device(args, boot, lost, err);
    rc = bench_open(&bench, boot, err);
    boot_close(boot);
    if (rc == ERR_OK && bench.rank == 0)
        header_print(args->csv);
    for (size_t bytes = args->smallest; rc == ERR_OK && bytes > 0;
         bytes = bench_args_next(args, bytes))
        rc = size_run(&bench, bytes, err);
    bench_link_close(&bench.link);
    comm_arena_close(bench.arena);
    comm_group_close(bench.group);
    mem_free(bench.plain);
    mem_free(bench.times);
    return rc;
}
