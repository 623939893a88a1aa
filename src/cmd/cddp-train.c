/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cddp-train: parses the command line, finds the other ranks through boot,
 * reads the run file, calls train_run, and turns its result into a message and
 * an exit status.
 *
 * boot is opened before the run file is read. So a rank that cannot read the
 * file (on a node without that mount, say) can still tell the others, which
 * would wait for it otherwise.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "build_id.h"
#include "cmd/output.h"
#include "cmd/run_file.h"
#include "cmd/train_args.h"
#include "cmd/train_local.h"
#include "cmd/version.h"
#include "train/run.h"
#include "train/vote.h"

/* Seconds that ranks may take to find each other at start-up; Slurm itself can
 * need a while to start thousands of tasks. */
#define BOOT_TIMEOUT 120.0

/* Seconds for which a finished run waits until its last lines can be written to
 * its output. */
#define END_PATIENCE 1.0

/* Input and result of one rank. */
typedef struct rank_job {
    const train_args_t *args;
    train_env_t env;
    boot_t *boot;
    err_code_t rc;
    err_t err;
    train_outcome_t outcome;
} rank_job_t;

/* ---- one rank ----------------------------------------------------------- */

/* End the process after a signal during start-up, if the ranks have not voted
 * to leave in time: some rank waits for slow storage or for another rank.
 * Nothing is lost, as no step was made. This is a signal handler, which may not
 * even call printf. */
static void start_give_up(int number)
{
    static const char text[] =
        "cddp-train: asked to stop during start-up, which takes long: start it "
        "again to go on\n";
    ssize_t wrote = write(STDERR_FILENO, text, sizeof text - 1);

    (void)number;
    (void)wrote;
    _exit(ERR_REQUEUE);
}

static err_code_t signals_choose(const train_config_t *config, err_t *err)
{
    return slurm_signal_choose((const char *const *)config->fault.signals.items,
                               config->fault.signals.count, err);
}

static void rank_run(rank_job_t *job)
{
    train_votes_t votes = {.context = job->boot,
                           .rank = boot_rank(job->boot),
                           .size = boot_size(job->boot),
                           .exchange = boot_exchange_call};
    train_config_t config = {0};
    tree_t *tree = NULL;
    bool loaded;

    log_rank_set(votes.rank);
    job->rc = run_file_read(&(run_file_t){.path = job->args->run_file,
                                          .sets = &job->args->sets,
                                          .pick = job->args->pick,
                                          .job = job->env.job},
                            &tree, &config, &job->err);
    loaded = job->rc == ERR_OK;
    if (loaded)
        job->rc = signals_choose(&config, &job->err);
    job->rc = train_vote(&votes, job->rc, &job->outcome.speaker, &job->err);
    if (job->rc == ERR_OK)
        job->rc =
            train_run(&config, &job->env, job->boot, &job->outcome, &job->err);
    else
        boot_close(job->boot);
    if (loaded)
        train_config_free(&config);
    tree_free(tree);
}

static void rank_main(boot_t *boot, int rank, void *jobs)
{
    rank_job_t *job = (rank_job_t *)jobs + rank;

    job->boot = boot;
    rank_run(job);
}

/* If the ranks must be processes, run them and set *spawned. They print their
 * messages themselves; answer->rc is their highest status. If the run file
 * cannot be read, leave that to the ranks, which report it. */
static err_code_t local_spawn(const rank_job_t *model, char *const *argv,
                              bool *spawned, rank_job_t *answer, err_t *err)
{
    train_config_t config = {0};
    tree_t *tree = NULL;
    int status = 0;
    err_code_t rc = ERR_OK;

    if (run_file_read(&(run_file_t){.path = model->args->run_file,
                                    .sets = &model->args->sets,
                                    .pick = model->args->pick,
                                    .job = model->env.job},
                      &tree, &config, NULL) != ERR_OK)
        return ERR_OK;
    *spawned = train_local_spawns(&config);
    if (*spawned) {
        rc = train_local_spawn(&config, model->args->local, argv, BOOT_TIMEOUT,
                               &status, err);
        answer->rc = (err_code_t)status;
        answer->outcome.speaker = false;
    }
    train_config_free(&config);
    tree_free(tree);
    return rc;
}

/* --local N: run the ranks as threads. *answer is the result of the rank that
 * prints the error (outcome.speaker), or that of rank 0 if no rank failed. */
static err_code_t local_threads(const rank_job_t *model, rank_job_t *answer,
                                err_t *err)
{
    int count = model->args->local;
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    rank_job_t *jobs = NULL;
    err_code_t rc;

    rc = mem_new(rank_job_t, (size_t)count, "ranks", &jobs, err);
    if (rc != ERR_OK)
        return rc;
    for (int r = 0; r < count; r++)
        jobs[r] = *model;
    rc = boot_threads_run(count, &config, rank_main, jobs, err);
    if (rc == ERR_OK) {
        *answer = jobs[0];
        for (int r = 1; r < count; r++)
            if (jobs[r].rc != ERR_OK &&
                (jobs[r].outcome.speaker || answer->rc == ERR_OK))
                *answer = jobs[r];
        for (int r = 0; r < count; r++)
            answer->outcome.stuck |= jobs[r].outcome.stuck;
    }
    mem_free(jobs);
    return rc;
}

/* --local N: threads or processes (train_local.h). */
static err_code_t local_run(const rank_job_t *model, char *const *argv,
                            rank_job_t *answer, err_t *err)
{
    bool spawned = false;
    err_code_t rc = ERR_OK;

    if (model->args->local > 1)
        rc = local_spawn(model, argv, &spawned, answer, err);
    return rc == ERR_OK && !spawned ? local_threads(model, answer, err) : rc;
}

/* Run one rank: a process of a Slurm step or of --local, or the only rank. */
static err_code_t step_run(rank_job_t *model, rank_job_t *answer, err_t *err)
{
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    err_code_t rc;

    rc = boot_open(&config, &model->boot, err);
    if (rc != ERR_OK)
        return rc;
    rank_run(model);
    *answer = *model;
    return ERR_OK;
}

/* ---- the end ------------------------------------------------------------ */

/* Print the result. If nobody reads the output (a stopped terminal, a full
 * pipe), the lines are dropped, like other lines of the run, since the process
 * has to end. */
static void result_print(const train_outcome_t *outcome)
{
    if (!outcome->have_eval || !file_takes(STDOUT_FILENO, END_PATIENCE))
        return;
    if (isnan(outcome->accuracy)) {
        printf("final: validation loss %.6g after %lld steps\n", outcome->loss,
               (long long)outcome->step);
        return;
    }
    printf("final: accuracy %.2f %%, validation loss %.6g after %lld steps\n",
           100.0 * outcome->accuracy, outcome->loss, (long long)outcome->step);
    if (!isnan(outcome->bound))
        printf("       best possible on this data: %.2f %% (the data's own "
               "bound)\n",
               100.0 * outcome->bound);
}

static const char *environment(const char *name)
{
    return getenv(name);
}

static err_code_t train_main(const train_args_t *args, char *const *argv,
                             rank_job_t *answer, err_t *err)
{
    /* A rank that --local has started is treated like one of a Slurm step. */
    const bool local = args->local > 0 && !boot_spawn_is_rank();
    slurm_job_t slurm;
    rank_job_t model = {
        .args = args,
        .env = {.job = &slurm,
                .signal = slurm_signal_pending,
                .signal_start = slurm_signal_pending,
                .resume = args->resume,
                .resume_path = args->resume_path,
                .predict = args->predict,
                .build_hash = hash_bytes(BUILD_ID, strlen(BUILD_ID)),
                .started = clock_now(),
                .backend = local ? "threads" : "ucx"},
        .err = ERR_INIT};
    char *versions;
    err_code_t rc;

    rc = slurm_job_read(environment, &slurm, err);
    if (rc == ERR_OK)
        rc = slurm_signal_install(err);
    if (rc != ERR_OK)
        return rc;
    if (local && slurm.tasks > 1)
        return err_set(err, ERR_USAGE,
                       "--local %d inside a Slurm step of %d tasks would start "
                       "%d runs: leave --local away",
                       args->local, slurm.tasks, slurm.tasks);
    if (args->local > 0)
        slurm_signal_impatient();
    slurm_signal_start(start_give_up);
    versions = cmd_version_line();
    model.env.versions = versions;
    rc = local ? local_run(&model, argv, answer, err)
               : step_run(&model, answer, err);
    free(versions);
    return rc;
}

/* --check and --print-rundir: only this process runs, and it does not train. A
 * check may be made before there is a Slurm job. */
static err_code_t look_main(const train_args_t *args, err_t *err)
{
    run_file_t file = {
        .path = args->run_file, .sets = &args->sets, .pick = args->pick};
    train_config_t config;
    slurm_job_t slurm;
    tree_t *tree = NULL;
    err_code_t rc;

    rc = slurm_job_read(environment, &slurm, err);
    if (rc != ERR_OK)
        return rc;
    if (!args->check || slurm.id[0] != '\0')
        file.job = &slurm;
    rc = run_file_read(&file, &tree, &config, err);
    if (rc != ERR_OK)
        return rc;
    if (args->check)
        rc = train_check(&config, args->local > 0 ? args->local : 1, err);
    else
        puts(config.run.dir);
    train_config_free(&config);
    tree_free(tree);
    return rc;
}

static int finish(err_code_t rc, err_t *err, bool speaker)
{
    const err_code_t all = cmd_output_finish(rc, err);

    if (all != ERR_OK && (speaker || all != rc) &&
        file_takes(STDERR_FILENO, END_PATIENCE))
        fprintf(stderr, "cddp-train: %s\n", err->text);
    return (int)all;
}

/* End of a complete run. Its results are its files, so lines that cannot be
 * printed change neither the results nor the exit status: with status 74
 * (ERR_IO) a complete run would be started again. */
static int finish_done(err_t *err)
{
    if (cmd_output_finish(ERR_OK, err) != ERR_OK)
        log_warn("train",
                 "%s; the run is complete, its numbers are in summary.json of "
                 "its directory",
                 err->text);
    return ERR_OK;
}

int main(int argc, char **argv)
{
    rank_job_t answer = {.err = ERR_INIT, .outcome = {.speaker = true}};
    err_t err = ERR_INIT;
    train_args_t args;
    err_code_t rc;

    file_standard_open();
    rc = train_args_parse(argc, argv, &args, &err);
    if (rc != ERR_OK)
        return finish(rc, &err, true);
    if (args.help || args.version) {
        if (args.help)
            fputs(train_args_help, stdout);
        else
            cmd_version_print("cddp-train");
        return finish(ERR_OK, &err, true);
    }
    if (args.check || args.print_rundir)
        return finish(look_main(&args, &err), &err, true);
    rc = train_main(&args, argv, &answer, &err);
    if (rc != ERR_OK)
        return finish(rc, &err, true);
    if (answer.rc == ERR_OK && answer.outcome.speaker)
        result_print(&answer.outcome);
    if (answer.rc == ERR_OK)
        return finish_done(&err);
    rc = finish(answer.rc, &answer.err, answer.outcome.speaker);
    if (answer.outcome.device_lost || answer.outcome.stuck) {
        fflush(NULL);
        _exit((int)rc);
    }
    return (int)rc;
}
