/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench: measures all-reduces, training steps, and reads and writes of
 * files. This file has the main function and starts the ranks, which are tasks
 * of a Slurm step or threads. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cmd/bench_allreduce.h"
#include "cmd/bench_args.h"
#include "cmd/bench_io.h"
#include "cmd/bench_step.h"
#include "cmd/output.h"
#include "cmd/train_local.h"
#include "cmd/version.h"

#define BOOT_TIMEOUT 120.0

typedef struct rank_job {
    const bench_args_t *allreduce;
    const bench_step_args_t *step; /* NULL: the command is allreduce */
    boot_t *boot;
    bool lost; /* the process must end by _exit, see bench_allreduce */
    err_code_t rc;
    err_t err;
} rank_job_t;

static void *rank_main(void *argument)
{
    rank_job_t *job = argument;

    job->rc = job->step != NULL ? bench_step(job->step, job->boot, &job->err)
                                : bench_allreduce(job->allreduce, job->boot,
                                                  &job->lost, &job->err);
    return NULL;
}

/* Start ranks 1 to count-1 as threads, run rank 0 in this thread, and wait for
 * the others. */
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
    /* the other ranks then stop waiting for rank 0 */
    else
        boot_close(jobs[0].boot);
    for (int r = 1; r < started; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; rc == ERR_OK && r < count; r++)
        if (jobs[r].rc != ERR_OK)
            rc = err_copy(err, &jobs[r].err);
    return rc;
}

/* Run [ranks] ranks as threads, each with a copy of [model]; model->lost is set
 * if one of them has lost its device. */
static err_code_t local_run(rank_job_t *model, int ranks, err_t *err)
{
    size_t count = (size_t)ranks;
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    rank_job_t *jobs = NULL;
    pthread_t *threads = NULL;
    boot_t **boots = NULL;
    err_code_t rc = mem_new(rank_job_t, count, "ranks", &jobs, err);

    if (rc == ERR_OK)
        rc = mem_new(pthread_t, count, "ranks", &threads, err);
    if (rc == ERR_OK)
        rc = mem_new(boot_t *, count, "ranks", &boots, err);
    if (rc == ERR_OK)
        rc = boot_threads_open(ranks, &config, boots, err);
    if (rc == ERR_OK) {
        for (size_t r = 0; r < count; r++) {
            jobs[r] = *model;
            jobs[r].boot = boots[r];
        }
        rc = ranks_run(jobs, threads, ranks, err);
        for (size_t r = 0; r < count; r++)
            model->lost = model->lost || jobs[r].lost;
    }
    mem_free(boots);
    mem_free(threads);
    mem_free(jobs);
    return rc;
}

/* Run one rank: a task of a Slurm step, or the only rank. */
static err_code_t task_run(rank_job_t *job, err_t *err)
{
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    err_code_t rc = boot_open(&config, &job->boot, err);

    if (rc != ERR_OK)
        return rc;
    rank_main(job);
    *err = job->err;
    return job->rc;
}

static int finish(err_code_t rc, err_t *err)
{
    rc = cmd_output_finish(rc, err);
    if (rc != ERR_OK)
        fprintf(stderr, "cddp-bench: %s\n", err->text);
    return (int)rc;
}

/* ---- allreduce ----------------------------------------------------------- */

/* Run the ranks of --local N as processes, which print their messages
 * themselves. Returns their highest exit status. */
static int processes_run(const bench_args_t *args, char **argv)
{
    const boot_spawn_t spawn = {.count = args->local,
                                .argv = argv,
                                .timeout = BOOT_TIMEOUT,
                                .patience = BOOT_TIMEOUT};
    err_t err = ERR_INIT;
    int status = 0;
    err_code_t rc = boot_spawn_run(&spawn, &status, &err);

    return rc == ERR_OK ? status : finish(rc, &err);
}

/* Run the ranks: threads, or this process as one of several. */
static int ranks_start(const bench_args_t *args, bool threads)
{
    rank_job_t job = {.allreduce = args, .err = ERR_INIT};
    err_t err = ERR_INIT;
    int status;

    status = finish(threads ? local_run(&job, args->local, &err)
                            : task_run(&job, &err),
                    &err);
    if (job.lost) {
        fflush(NULL);
        _exit(status);
    }
    return status;
}

static int allreduce_main(int argc, char **argv)
{
    bench_args_t args = {.help = false};
    err_t err = ERR_INIT;
    err_code_t rc = bench_args_parse(argc, argv, &args, &err);
    bool local;

    if (rc == ERR_OK && args.help)
        fputs(bench_args_help, stdout);
    else if (rc == ERR_OK && args.version)
        cmd_version_print("cddp-bench");
    if (rc != ERR_OK || args.help || args.version)
        return finish(rc, &err);
    local = args.local > 0 && !boot_spawn_is_rank();
    if (local && args.local > 1 && args.on_device &&
        train_local_processes(args.device, args.backend))
        return processes_run(&args, argv);
    return ranks_start(&args, local);
}

/* ---- step ---------------------------------------------------------------- */

/* Measure a row of --scaling in a new process, so that it has its own peak
 * memory and its own first step. Returns the exit status. */
static int row_fork(rank_job_t *job, int ranks)
{
    err_t err = ERR_INIT;
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(finish(local_run(job, ranks, &err), &err));
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return finish(err_set(&err, ERR_IO, "cannot start a process: %s",
                              strerror(errno)),
                      &err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int step_main(int argc, char **argv)
{
    bench_step_args_t args = {.help = false};
    rank_job_t job = {.step = &args, .err = ERR_INIT};
    err_t err = ERR_INIT;
    err_code_t rc = bench_step_args_parse(argc, argv, &args, &err);
    int status = 0;

    if (rc == ERR_OK && args.help)
        fputs(bench_step_args_help, stdout);
    if (rc != ERR_OK || args.help)
        return finish(rc, &err);
    bench_step_header(&args);
    if (args.scaling == BENCH_SCALING_NONE)
        return finish(args.local > 0 ? local_run(&job, args.local, &err)
                                     : task_run(&job, &err),
                      &err);
    for (int ranks = 1; status == 0 && ranks > 0;
         ranks = bench_step_args_next(&args, ranks))
        status = row_fork(&job, ranks);
    return status;
}

/* ---- io ------------------------------------------------------------------ */

static int io_main(int argc, char **argv)
{
    bench_io_args_t args = {.help = false};
    err_t err = ERR_INIT;
    err_code_t rc = bench_io_args_parse(argc, argv, &args, &err);

    if (rc == ERR_OK && args.help)
        fputs(bench_io_args_help, stdout);
    else if (rc == ERR_OK)
        rc = bench_io(&args, &err);
    return finish(rc, &err);
}

int main(int argc, char **argv)
{
    file_standard_open();
    if (argc > 1 && strcmp(argv[1], "step") == 0)
        return step_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "io") == 0)
        return io_main(argc - 1, argv + 1);
    return allreduce_main(argc, argv);
}
