/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * For each size: check the result of one all-reduce, time several all-reduces,
 * and time in the same way the bound and the overlap. A time is measured from
 * the end of a barrier until the host knows that the device is done; the
 * slowest rank counts.
 *
 * The bound is the time in which a device copies as many bytes within its
 * memory: it reads and writes each byte once. Where the group copies data
 * through the host, the bound is the time in which as many bytes go to the host
 * and, at the same time, as many come back.
 *
 * To measure the overlap, copies within the device's memory that take about as
 * long as an all-reduce are timed alone, and then together with an all-reduce.
 */
#include "cmd/bench_device.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/bench_rig.h"
#include "cmd/bench_times.h"
#include "cmd/bench_value.h"

#define WARM_UP 3
#define COPIES_MAX 1000

typedef struct row {
    size_t bytes;
    bench_times_t times, bound;
    double overlap; /* 0 if there is one rank */
} row_t;

/* A kind of call that is timed. [copies]: the number of copies, for kinds that
 * make copies. */
typedef err_code_t call_t(bench_rig_t *rig, size_t bytes, int copies,
                          err_t *err);

/* ---- results ------------------------------------------------------------- */

static void header_print(bool csv)
{
    if (csv)
        printf("bytes,ranks,backend,device,min_us,median_us,p99_us,algbw_GBps,"
               "busbw_GBps,bound_us,bound_by,overlap\n");
    else
        printf("%10s %5s %-8s %-6s %11s %11s %11s %10s %10s %11s %-7s %7s\n",
               "bytes", "ranks", "backend", "device", "min us", "median us",
               "p99 us", "algbw GB/s", "busbw GB/s", "bound us", "by",
               "overlap");
}

static void row_print(const bench_rig_t *rig, const row_t *row)
{
    const double algbw = (double)row->bytes / row->times.median * 1e-9;
    const double busbw = algbw * 2 * (rig->size - 1) / rig->size;

    printf(rig->args->csv
               ? "%zu,%d,%s,%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%s,%.3f\n"
               : "%10zu %5d %-8s %-6s %11.3f %11.3f %11.3f %10.3f %10.3f "
                 "%11.3f %-7s %7.3f\n",
           row->bytes, rig->size, comm_group_backend(rig->group),
           dev_name(rig->device.dev), row->times.min * 1e6,
           row->times.median * 1e6, row->times.p99 * 1e6, algbw, busbw,
           row->bound.median * 1e6, rig->staged ? "staging" : "copy",
           row->overlap);
    fflush(stdout);
}

/* ---- one all-reduce ------------------------------------------------------ */

/* Start the sum, after the operations that the stream has now. */
static err_code_t reduce_start(bench_rig_t *rig, size_t bytes,
                               comm_work_t **work, err_t *err)
{
    err_code_t rc =
        comm_group_after_stream(rig->group, rig->event, rig->stream, err);

    *work = NULL;
    if (rc != ERR_OK)
        return rc;
    if (comm_allreduce_start(rig->group, rig->data, bytes / sizeof(float),
                             COMM_FLOAT32, COMM_SUM, work, err) == COMM_FAILED)
        return err->code;
    return ERR_OK;
}

/* Wait until the sum is in the device's memory. */
static err_code_t reduce_wait(bench_rig_t *rig, comm_work_t *work, err_t *err)
{
    err_code_t rc = comm_work_wait_on(work, rig->stream, err);

    return rc == ERR_OK ? dev_stream_wait(rig->stream, err) : rc;
}

static err_code_t call_reduce(bench_rig_t *rig, size_t bytes, int copies,
                              err_t *err)
{
    comm_work_t *work;
    err_code_t rc = reduce_start(rig, bytes, &work, err);

    (void)copies;
    return rc == ERR_OK ? reduce_wait(rig, work, err) : rc;
}

/* One all-reduce of numbers whose sum is known. */
static err_code_t result_check(bench_rig_t *rig, size_t bytes, err_t *err)
{
    const size_t count = bytes / sizeof(float);
    err_code_t rc;

    for (size_t i = 0; i < count; i++)
        rig->host[i] = bench_value(rig->rank, i);
    rc = dev_copy(rig->stream, rig->data, rig->host, bytes, DEV_HOST_TO_DEV,
                  err);
    if (rc == ERR_OK)
        rc = call_reduce(rig, bytes, 0, err);
    if (rc == ERR_OK)
        rc = dev_copy(rig->stream, rig->host, rig->data, bytes, DEV_DEV_TO_HOST,
                      err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(rig->stream, err);
    return rc == ERR_OK
               ? bench_value_check(rig->host, count, rig->rank, rig->size, err)
               : rc;
}

/* ---- what it is compared with -------------------------------------------- */

static err_code_t copies_enqueue(bench_rig_t *rig, size_t bytes, int copies,
                                 err_t *err)
{
    char *to = (char *)rig->twin + rig->args->largest;
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < copies; i++)
        rc = dev_copy(rig->beside, to, rig->twin, bytes, DEV_DEV_TO_DEV, err);
    return rc;
}

static err_code_t call_copies(bench_rig_t *rig, size_t bytes, int copies,
                              err_t *err)
{
    err_code_t rc = copies_enqueue(rig, bytes, copies, err);

    return rc == ERR_OK ? dev_stream_wait(rig->beside, err) : rc;
}

/* To the host and back, at the same time. */
static err_code_t call_staging(bench_rig_t *rig, size_t bytes, int copies,
                               err_t *err)
{
    const char *from = (const char *)rig->host + rig->args->largest;
    err_code_t rc = dev_copy(rig->stream, rig->host, rig->data, bytes,
                             DEV_DEV_TO_HOST, err);

    (void)copies;
    if (rc == ERR_OK)
        rc =
            dev_copy(rig->beside, rig->twin, from, bytes, DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(rig->stream, err);
    return rc == ERR_OK ? dev_stream_wait(rig->beside, err) : rc;
}

/* An all-reduce and copies, at the same time. */
static err_code_t call_both(bench_rig_t *rig, size_t bytes, int copies,
                            err_t *err)
{
    comm_work_t *work;
    err_code_t rc = reduce_start(rig, bytes, &work, err);

    if (rc == ERR_OK)
        rc = copies_enqueue(rig, bytes, copies, err);
    if (rc == ERR_OK)
        rc = reduce_wait(rig, work, err);
    return rc == ERR_OK ? dev_stream_wait(rig->beside, err) : rc;
}

/* ---- times --------------------------------------------------------------- */

static err_code_t calls_time(bench_rig_t *rig, size_t bytes, int copies,
                             call_t *call, bench_times_t *out, err_t *err)
{
    const size_t rounds = bench_args_rounds(rig->args, bytes);
    err_code_t rc = ERR_OK;

    for (size_t i = 0; rc == ERR_OK && i < WARM_UP + rounds; i++) {
        double begin;

        rc = dev_fill(rig->stream, rig->data, 0, bytes, err);
        if (rc == ERR_OK)
            rc = dev_stream_wait(rig->stream, err);
        if (rc == ERR_OK)
            rc = comm_barrier(rig->control, err);
        begin = clock_now();
        if (rc == ERR_OK)
            rc = call(rig, bytes, copies, err);
        if (i >= WARM_UP)
            rig->times[i - WARM_UP] = clock_now() - begin;
    }
    return rc == ERR_OK
               ? bench_times_slowest(rig->control, rig->times, rounds, out, err)
               : rc;
}

/* Find which part of the shorter of the two, all-reduce or copies, ran at the
 * same time as the other. [copy]: the time of one copy, equal on all ranks. */
static err_code_t overlap_time(bench_rig_t *rig, double copy, row_t *row,
                               err_t *err)
{
    const double wanted = ceil(row->times.median / copy);
    const int copies = wanted < COPIES_MAX ? (int)wanted : COPIES_MAX;
    bench_times_t load = {0}, both = {0};
    double least, saved;
    err_code_t rc =
        calls_time(rig, row->bytes, copies, call_copies, &load, err);

    if (rc == ERR_OK)
        rc = calls_time(rig, row->bytes, copies, call_both, &both, err);
    least = fmin(load.median, row->times.median);
    saved = load.median + row->times.median - both.median;
    if (rc == ERR_OK)
        row->overlap = fmax(0, fmin(1, saved / least));
    return rc;
}

static err_code_t size_run(bench_rig_t *rig, size_t bytes, err_t *err)
{
    row_t row = {.bytes = bytes};
    bench_times_t copy = {0};
    err_code_t rc = result_check(rig, bytes, err);

    if (rc == ERR_OK)
        rc = calls_time(rig, bytes, 0, call_reduce, &row.times, err);
    if (rc == ERR_OK)
        rc = calls_time(rig, bytes, 1, call_copies, &copy, err);
    row.bound = copy;
    if (rc == ERR_OK && rig->staged)
        rc = calls_time(rig, bytes, 0, call_staging, &row.bound, err);
    if (rc == ERR_OK && rig->size > 1)
        rc = overlap_time(rig, copy.median, &row, err);
    if (rc == ERR_OK && rig->rank == 0)
        row_print(rig, &row);
    return rc;
}

err_code_t bench_device(const bench_args_t *args, boot_t *boot, bool *lost,
                        err_t *err)
{
    bench_rig_t rig;
    err_code_t rc = bench_rig_open(args, boot, &rig, err);

    if (rc == ERR_OK && rig.rank == 0) {
        log_info("bench", "sums memory of %s", rig.device.name);
        header_print(args->csv);
    }
    for (size_t bytes = args->smallest; rc == ERR_OK && bytes > 0;
         bytes = bench_args_next(args, bytes))
        rc = size_run(&rig, bytes, err);
    bench_rig_close(&rig, lost);
    return rc;
}
