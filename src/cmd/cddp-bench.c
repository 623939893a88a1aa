/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench: how fast the ranks of a job are at what cddp asks of them. Here:
 * command line, one rank per task of a Slurm step or per thread. */
#include "config.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/thread.h"
#include "cmd/bench_allreduce.h"
#include "cmd/bench_args.h"
#include "cmd/version.h"

#define BOOT_TIMEOUT 120.0

typedef struct rank_job {
    const bench_args_t *args;
    boot_t *boot;
    err_code_t rc;
    err_t err;
} rank_job_t;

static void *rank_main(void *argument)
{
    rank_job_t *job = argument;

    job->rc = bench_allreduce(job->args, job->boot, &job->err);
    return NULL;
}

/* Start ranks 1 .. count-1, be rank 0, wait for the others. */
static err_code_t ranks_run(rank_job_t *jobs, pthread_t *threads, int count,
                            err_t *err)
{
    err_code_t rc = ERR_OK;
    int started = 1;

    for (; started < count; started++) {
        rc = thread_start("cddp-rank", rank_main, &jobs[started],
                          &threads[started], err);
        if (rc != ERR_OK)
            break;
    }
    if (rc == ERR_OK)
        rank_main(&jobs[0]);
    else
        boot_close(jobs[0].boot); /* the others give up waiting for it */
    for (int r = 1; r < started; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; rc == ERR_OK && r < count; r++)
        if (jobs[r].rc != ERR_OK) {
            rc = jobs[r].rc;
            *err = jobs[r].err;
        }
    return rc;
}

static err_code_t local_run(const bench_args_t *args, err_t *err)
{
    size_t count = (size_t)args->local;
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    void *jobs = NULL, *threads = NULL, *boots = NULL;
    err_code_t rc = mem_alloc(count * sizeof(rank_job_t), "ranks", &jobs, err);

    if (rc == ERR_OK)
        rc = mem_alloc(count * sizeof(pthread_t), "ranks", &threads, err);
    if (rc == ERR_OK)
        rc = mem_alloc(count * sizeof(boot_t *), "ranks", &boots, err);
    if (rc == ERR_OK)
        rc = boot_threads_open(args->local, &config, boots, err);
    if (rc == ERR_OK) {
        for (size_t r = 0; r < count; r++)
            ((rank_job_t *)jobs)[r] =
                (rank_job_t){.args = args, .boot = ((boot_t **)boots)[r]};
        rc = ranks_run(jobs, threads, args->local, err);
    }
    mem_free(boots);
    mem_free(threads);
    mem_free(jobs);
    return rc;
}

static err_code_t step_run(const bench_args_t *args, err_t *err)
{
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    boot_t *boot = NULL;
    err_code_t rc = boot_open(&config, &boot, err);

    return rc == ERR_OK ? bench_allreduce(args, boot, err) : rc;
}

int main(int argc, char **argv)
{
    bench_args_t args = {.help = false};
    err_t err = ERR_INIT;
    err_code_t rc = bench_args_parse(argc, argv, &args, &err);

    if (rc == ERR_OK && args.help)
        fputs(bench_args_help, stdout);
    else if (rc == ERR_OK && args.version)
        cmd_version_print("cddp-bench");
    else if (rc == ERR_OK)
        rc = args.local > 0 ? local_run(&args, &err) : step_run(&args, &err);
    if (fflush(stdout) != 0 && rc == ERR_OK)
        rc = err_set(&err, ERR_IO, "cannot write to standard output");
    if (rc != ERR_OK)
        fprintf(stderr, "cddp-bench: %s\n", err.text);
    return (int)rc;
}
