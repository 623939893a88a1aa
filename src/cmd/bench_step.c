/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opens the run, runs the first steps, then times further steps. The peak rates
 * of the machine are measured last, so that the memory for that is not counted
 * as memory of the run.
 */
#include "cmd/bench_step.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd/bench_peak.h"
#include "cmd/bench_record.h"
#include "cmd/bench_times.h"
#include "cmd/run_file.h"
#include "train/device.h"

#define RECORD_STEPS 5

typedef struct bench {
    const bench_step_args_t *args;
    const train_config_t *config;
    train_bench_t *train;
    train_bench_info_t info;
    double *times;   /* [args->steps], seconds */
    double *exposed; /* [args->steps], seconds */
    double first_step;
} bench_t;

/* Result of the measurement: one row of the output. */
typedef struct row {
    bench_times_t times;
    nn_cost_t cost;
    bench_peak_t peak; /* sum over all ranks */
    double rss, state, activations;
    double exposed; /* mean over steps, in seconds; see steps_gather */
} row_t;

/* ---- the row ------------------------------------------------------------- */

#define COLUMNS                                                              \
    "model,precision,batch,ranks,threads,steps,min_ms,median_ms,p95_ms,"     \
    "samples_per_s,gflops,peak_gflops,bandwidth_GBps,bound_ms,limit,rss_MB," \
    "state_MB,activation_MB,first_step_s,exposed_ms,device\n"

void bench_step_header(const bench_step_args_t *args)
{
    if (args->paced)
        return;
    if (args->csv)
        fputs(COLUMNS, stdout);
    else
        str_print("%-12s %5s %6s %5s %7s %9s %9s %9s %10s %8s %8s %8s %9s %-8s "
                  "%7s %7s\n",
                  "model", "type", "batch", "ranks", "threads", "min ms",
                  "median ms", "p95 ms", "samples/s", "GFLOP/s", "peak", "GB/s",
                  "bound ms", "limit", "RSS MB", "first s");
}

/* Name of the resource that limits the speed of the step. */
static const char *limit_name(const bench_t *bench, const row_t *row)
{
    const long cores = thread_cores();

    if (bench->info.threads * (bench->args->local > 0 ? bench->info.size : 1) >
        cores)
        return "cores"; /* there are more threads than cores */
    /* small operations: the cost of calls counts more than either rate */
    if (2 * row->cost.seconds < row->times.median)
        return "calls";
    return 2 * row->cost.compute_seconds > row->cost.seconds ? "compute"
                                                             : "memory";
}

static void row_print(const bench_t *bench, const row_t *row)
{
    const double flops = row->cost.forward_flops + row->cost.backward_flops;
    const double median = row->times.median;
    const char *limit = limit_name(bench, row);

    if (bench->args->csv)
        str_print("%s,%s,%lld,%d,%d,%d,%.4f,%.4f,%.4f,%.2f,%.2f,%.2f,%.2f,%.4f,"
                  "%s,%.1f,%.1f,%.1f,%.4f,%.4f,%s\n",
                  bench->config->run.name,
                  train_precision_name(bench->info.compute_type),
                  (long long)bench->info.global, bench->info.size,
                  bench->info.threads, bench->args->steps, row->times.min * 1e3,
                  median * 1e3, row->times.p95 * 1e3,
                  (double)bench->info.global / median, flops / median * 1e-9,
                  row->peak.flops_s * 1e-9, row->peak.bytes_s * 1e-9,
                  row->cost.seconds * 1e3, limit, row->rss * 1e-6,
                  row->state * 1e-6, row->activations * 1e-6, bench->first_step,
                  row->exposed * 1e3, dev_name(bench->info.dev));
    else
        str_print(
            "%-12s %5s %6lld %5d %7d %9.3f %9.3f %9.3f %10.1f %8.1f %8.1f "
            "%8.1f %9.3f %-8s %7.1f %7.3f\n",
            bench->config->run.name,
            train_precision_name(bench->info.compute_type),
            (long long)bench->info.global, bench->info.size,
            bench->info.threads, row->times.min * 1e3, median * 1e3,
            row->times.p95 * 1e3, (double)bench->info.global / median,
            flops / median * 1e-9, row->peak.flops_s * 1e-9,
            row->peak.bytes_s * 1e-9, row->cost.seconds * 1e3, limit,
            row->rss * 1e-6, bench->first_step);
    fflush(stdout);
}

/* Peak resident memory of one rank, in bytes. With --local all ranks share one
 * process, so each gets an equal part. */
static double rss_share(const bench_t *bench)
{
    double ranks = bench->args->local > 0 ? bench->info.size : 1;

    return mem_peak() / ranks;
}

/* Fill in the fields of [row] that concern all ranks: FLOPs, lower bound, peak
 * rates and memory. The values of ranks are summed; of the lower bounds the
 * longest counts. */
static err_code_t row_make(bench_t *bench, row_t *row, err_t *err)
{
    const bench_peak_plan_t plan = {bench->info.dev, bench->info.threads,
                                    bench->info.compute_type};
    comm_group_t *group = bench->info.group;
    double sums[7] = {0}, slowest[2];
    err_code_t rc;

    sums[4] = rss_share(bench);
    rc = comm_barrier(group, err);
    if (rc == ERR_OK)
        rc = bench_peak_measure(&plan, &row->peak, err);
    if (rc != ERR_OK)
        return rc;
    row->cost =
        train_bench_cost(bench->train, row->peak.flops_s, row->peak.bytes_s);
    row->cost.seconds += (double)bench->info.update_bytes / row->peak.bytes_s;
    slowest[0] = row->cost.seconds;
    slowest[1] = row->cost.compute_seconds;
    sums[0] = row->cost.forward_flops;
    sums[1] = row->cost.backward_flops;
    sums[2] = row->peak.flops_s;
    sums[3] = row->peak.bytes_s;
    sums[5] = (double)bench->info.state_bytes;
    sums[6] = (double)bench->info.activation_bytes;
    rc = comm_allreduce(group, sums, 7, COMM_FLOAT64, COMM_SUM, err);
    if (rc == ERR_OK)
        rc = comm_allreduce(group, slowest, 2, COMM_FLOAT64, COMM_MAX, err);
    row->cost = (nn_cost_t){.forward_flops = sums[0],
                            .backward_flops = sums[1],
                            .seconds = slowest[0],
                            .compute_seconds = slowest[1]};
    row->peak = (bench_peak_t){.flops_s = sums[2], .bytes_s = sums[3]};
    row->rss = sums[4];
    row->state = sums[5];
    row->activations = sums[6];
    return rc;
}

/* ---- steps --------------------------------------------------------------- */

static err_code_t steps_run(bench_t *bench, int count, bool timed, err_t *err)
{
    err_code_t rc = ERR_OK;
    double loss;

    for (int i = 0; rc == ERR_OK && i < count; i++) {
        double begin = clock_now();
        double exposed = train_bench_exposed(bench->train);

        rc = train_bench_step(bench->train, &loss, err);
        if (!timed)
            continue;
        bench->times[i] = clock_now() - begin;
        bench->exposed[i] = train_bench_exposed(bench->train) - exposed;
    }
    return rc;
}

static err_code_t arena_copy(const float *from, size_t elems, float **out,
                             err_t *err)
{
    err_code_t rc = mem_new(float, elems, "a record", out, err);

    if (rc == ERR_OK)
        memcpy(*out, from, elems * sizeof **out);
    return rc;
}

static err_code_t record(bench_t *bench, err_t *err)
{
    const train_bench_info_t *info = &bench->info;
    float *params = NULL, *buffers = NULL;
    double losses[RECORD_STEPS];
    err_code_t rc;

    if (info->size > 1)
        return err_set(err, ERR_USAGE, "--record is for one rank, not for %d",
                       info->size);
    rc = train_bench_pull(bench->train, err);
    if (rc == ERR_OK)
        rc = arena_copy(info->params, nn_graph_param_elems(info->graph),
                        &params, err);
    if (rc == ERR_OK)
        rc = arena_copy(info->buffers, nn_graph_buffer_elems(info->graph),
                        &buffers, err);
    for (int i = 0; rc == ERR_OK && i < RECORD_STEPS; i++)
        rc = train_bench_step(bench->train, &losses[i], err);
    if (rc == ERR_OK)
        rc = bench_record_write(
            bench->args->record,
            &(bench_record_t){info, params, buffers, losses, RECORD_STEPS},
            err);
    mem_free(params);
    mem_free(buffers);
    return rc;
}

/* For each line on standard input run one round of steps, so that another
 * program can be timed between the rounds. */
static err_code_t paced_run(bench_t *bench, err_t *err)
{
    const int steps = bench->args->steps;
    err_code_t rc = ERR_OK;
    char line[16];

    if (bench->info.size > 1)
        return err_set(err, ERR_USAGE, "--paced is for one rank, not for %d",
                       bench->info.size);
    while (rc == ERR_OK && fgets(line, sizeof line, stdin) != NULL) {
        double begin;

        rc = steps_run(bench, bench->args->warm_up, false, err);
        begin = clock_now();
        if (rc == ERR_OK)
            rc = steps_run(bench, steps, false, err);
        str_print("%.9f\n", (clock_now() - begin) / steps);
        fflush(stdout);
    }
    return rc;
}

/* Combine the times of all ranks. A step takes as long as on the slowest rank.
 * Its exposed communication is the shortest wait of any rank: the rank that
 * arrived last waited for no other rank, only for the network. */
static err_code_t steps_gather(bench_t *bench, row_t *row, err_t *err)
{
    const size_t steps = (size_t)bench->args->steps;
    err_code_t rc;

    rc = comm_allreduce(bench->info.group, bench->times, steps, COMM_FLOAT64,
                        COMM_MAX, err);
    if (rc == ERR_OK)
        rc = comm_allreduce(bench->info.group, bench->exposed, steps,
                            COMM_FLOAT64, COMM_MIN, err);
    for (size_t i = 0; i < steps; i++)
        row->exposed += bench->exposed[i] / (double)steps;
    return rc;
}

static err_code_t timed_run(bench_t *bench, err_t *err)
{
    const int steps = bench->args->steps;
    row_t row = {.rss = 0};
    err_code_t rc =
        mem_new(double, 2 * (size_t)steps, "times", &bench->times, err);

    if (rc != ERR_OK)
        return rc;
    bench->exposed = bench->times + steps;
    rc = steps_run(bench, bench->args->warm_up, false, err);
    if (rc == ERR_OK)
        rc = steps_run(bench, steps, true, err);
    if (rc == ERR_OK)
        rc = steps_gather(bench, &row, err);
    if (rc == ERR_OK)
        rc = row_make(bench, &row, err);
    if (rc == ERR_OK) {
        row.times = bench_times(bench->times, (size_t)steps);
        if (bench->info.rank == 0)
            row_print(bench, &row);
    }
    mem_free(bench->times);
    return rc;
}

/* Run and time the steps of the open run. */
static err_code_t bench_run(bench_t *bench, err_t *err)
{
    err_code_t rc;

    bench->info = train_bench_info(bench->train);
    if (bench->args->record != NULL)
        rc = record(bench, err);
    else
        rc = steps_run(bench, 1, false, err);
    bench->first_step = clock_since_start();
    if (rc == ERR_OK)
        rc = bench->args->paced ? paced_run(bench, err) : timed_run(bench, err);
    return rc;
}

err_code_t bench_step(const bench_step_args_t *args, boot_t *boot, err_t *err)
{
    train_config_t config = {0};
    bench_t bench = {.args = args, .config = &config};
    const int ranks = boot_size(boot);
    tree_t *tree = NULL;
    err_code_t rc = run_file_read(
        &(run_file_t){.path = args->run_file, .sets = &args->sets}, &tree,
        &config, err);

    if (rc != ERR_OK) {
        boot_close(boot);
        return rc;
    }
    if (args->scaling == BENCH_SCALING_WEAK)
        config.train.batch *= ranks;
    rc = train_bench_open(&config, args->local > 0 ? "threads" : "ucx", boot,
                          &bench.train, err);
    if (rc == ERR_OK)
        rc = bench_run(&bench, err);
    train_bench_close(bench.train);
    train_config_free(&config);
    tree_free(tree);
    return rc;
}
