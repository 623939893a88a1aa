/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From the environment to the first step, in phases. What a rank does alone in
 * a phase ends in a vote, so an error of one ends all before anybody waits in a
 * collective that it will never enter.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "hdf5io/checkpoint_data.h"
#include "train/begin.h"
#include "train/hello.h"
#include "train/lone.h"
#include "train/marks.h"
#include "train/plateau.h"
#include "train/run_priv.h"

static train_split_t split_of(const train_state_t *run, bool valid)
{
    return (train_split_t){
        .config = run->config,
        .graph = run->graph,
        .mpi = run->config->data.io == TRAIN_IO_MPI ? run->mpi : NULL,
        .rank = run->rank,
        .size = run->size,
        .valid = valid};
}

/* ---- meeting the others ------------------------------------------------- */

static err_code_t oob_exchange(void *context, const void *mine, size_t bytes,
                               void *all, err_t *err)
{
    return boot_exchange(context, mine, bytes, all, err);
}

static err_code_t group_open(train_state_t *run, err_t *err)
{
    comm_oob_t oob = {.context = run->boot,
                      .rank = run->rank,
                      .size = run->size,
                      .exchange = oob_exchange};
    const char *backend = ddp_backend_name(&run->config->ddp);
    comm_config_t config = {.timeout = run->config->fault.timeout,
                            .table_path = run->config->ddp.comm_table};
    err_code_t rc;

    if (strcmp(backend, "auto") == 0)
        backend = run->size == 1 ? "self" : run->env->backend;
    config.backend = backend;
    rc = comm_group_open(&config, &oob, &run->group, err);
    if (rc != ERR_OK)
        return rc;
    run->votes = train_votes_of_group(run->group);
    return run->size == 1 ? ERR_OK
                          : train_patience_open(run->group, config.timeout,
                                                run->config->fault.io_timeout,
                                                &run->patience, err);
}

/* The OpenMP library reads it once, before main(). */
static bool waits_passively(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");

    return policy != NULL && strcasecmp(policy, "passive") == 0;
}

/* Team size: the cores of this rank's mask, shared with the ranks that have the
 * same mask on the same host. More threads than cores only wait for each other.
 */
static int threads_choose(const train_state_t *run, const train_hello_t *hello)
{
    int fair = run->cores;
    int asked = (int)run->config->train.threads;

    if (asked > fair && run->rank == 0)
        log_warn("train",
                 "train.threads is %d, but this rank has %d core%s to "
                 "itself (%d for %d rank%s): expect it to be slower%s",
                 asked, fair, fair == 1 ? "" : "s", hello->cores,
                 hello->sharers, hello->sharers == 1 ? "" : "s",
                 waits_passively() ? ""
                                   : ", the more so as OpenMP's threads spin "
                                     "while they wait: set "
                                     "OMP_WAIT_POLICY=passive");
    return asked > 0 ? asked : fair;
}

static uint64_t versions_hash(const char *versions)
{
    return versions == NULL ? 0 : hash_bytes(versions, strlen(versions));
}

/* MPI knows processes, not ranks that are threads of one. */
static err_code_t mpi_check(const train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;

    if (strcmp(boot_name(run->boot), "threads") != 0 ||
        (config->data.io != TRAIN_IO_MPI &&
         config->checkpoint.io != TRAIN_IO_MPI))
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s.io: mpi needs ranks that are processes, but --local "
                   "makes threads: start them by srun --mpi=pmix, or set "
                   "%s.io to independent",
                   config->data.io == TRAIN_IO_MPI ? "data" : "checkpoint",
                   config->data.io == TRAIN_IO_MPI ? "data" : "checkpoint");
}

static err_code_t meet(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    train_hello_t hello;
    err_code_t rc;

    run->phase = "bootstrap";
    rc = mpi_check(run, err);
    if (rc != ERR_OK)
        return rc;
    rc = train_hello(run->boot, train_config_hash(config), run->env->build_hash,
                     &hello, err);
    if (rc == ERR_OK && config->train.reproducible)
        rc = boot_agree(run->boot, "CPU model or library versions",
                        versions_hash(run->env->versions), err);
    if (rc != ERR_OK)
        return rc;
    if (config->train.batch < run->size)
        return err_set(err, ERR_CONFIG,
                       "train.batch is %lld, smaller than the %d ranks: some "
                       "would never have a sample; raise it or start fewer "
                       "ranks",
                       (long long)config->train.batch, run->size);
    run->cores = hello.cores > hello.sharers ? hello.cores / hello.sharers : 1;
    run->threads = threads_choose(run, &hello);
    return group_open(run, err);
}

/* PMIx is left before training, as its loss kills the step; MPI needs it. */
static err_code_t leave_boot(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;

    if (config->data.io == TRAIN_IO_MPI ||
        config->checkpoint.io == TRAIN_IO_MPI)
        return h5mpi_open(run->rank, run->size, &run->mpi, err);
    boot_close(run->boot);
    run->boot = NULL;
    return ERR_OK;
}

/* ---- model, data, directory --------------------------------------------- */

static err_code_t data_open(train_state_t *run, err_t *err)
{
    train_split_t split;
    err_code_t rc;

    rc = nn_graph_open(run->config->model, run->config->loss, &run->graph, err);
    if (rc == ERR_OK && run->config->train.reproducible &&
        nn_graph_syncs(run->graph) > 0)
        rc = err_set(err, ERR_CONFIG,
                     "train.reproducible computes each micro-batch alone, but "
                     "the model has syncbatchnorm layers, whose statistics "
                     "span the ranks; use batchnorm there, or leave "
                     "train.reproducible false");
    if (rc != ERR_OK)
        return rc;
    split = split_of(run, false);
    rc = train_data_open(&split, &run->train, err);
    if (rc != ERR_OK)
        return rc;
    rc = train_lone_check(run->config, run->graph, &run->train, run->size,
                          run->rank == 0, &run->lone, err);
    if (rc != ERR_OK)
        return rc;
    run->teams = train_teams(run->config, &run->train, run->threads);
    split = split_of(run, true);
    rc = train_data_open(&split, &run->valid, err);
    return rc == ERR_OK ? train_eval_open(run, err) : rc;
}

/* Bytes are being compared: what comes next may be slow, too. */
static void compare_alive(void *context)
{
    train_state_t *run = context;

    train_storage_begin(run, run->phase);
}

/* Do all ranks see the same samples? Collective. */
static err_code_t data_compare(train_state_t *run, err_t *err)
{
    train_same_t same = {.group = run->group,
                         .what = "data.train",
                         .how = (train_validate_t)run->config->data.validate,
                         .alive = compare_alive,
                         .context = run};
    err_code_t rc;

    train_phase_set(run, "comparing data");
    rc = train_same(&same, run->train.dataset, &run->train.marks, err);
    rc = train_vote(&run->votes, rc, &run->speaker, err);
    if (rc == ERR_OK && run->valid.dataset != NULL) {
        same.what = "data.valid";
        rc = train_same(&same, run->valid.dataset, &run->valid.marks, err);
        rc = train_vote(&run->votes, rc, &run->speaker, err);
    }
    if (rc != ERR_OK)
        return rc;
    rc = train_marks_list(&run->train, &run->valid, &run->marks,
                          &run->mark_count, err);
    return train_vote(&run->votes, rc, &run->speaker, err);
}

static err_code_t directory_open(train_state_t *run, err_t *err)
{
    const slurm_job_t *job = run->env->job;
    char *owner = NULL;
    err_code_t rc;

    if (run->rank != 0)
        return ERR_OK;
    if (job->step_id[0] != '\0')
        owner = str_printf("Slurm step %s on host %s, process %d", job->step_id,
                           job->host, (int)getpid());
    else
        owner = str_printf("process %d on host %s", (int)getpid(), job->host);
    rc = train_rundir_open(run->config->run.dir, owner, &run->rundir, err);
    free(owner);
    return rc;
}

static train_replica_plan_t plan_of(train_state_t *run)
{
    const train_config_t *config = run->config;

    return (train_replica_plan_t){
        .config = run->config,
        .graph = run->graph,
        .group = run->group,
        .rank = run->rank,
        .ranks = run->size,
        .threads = run->threads,
        .cores = run->cores,
        .teams = run->teams,
        .team_threads = train_team_threads(config, run->threads),
        .bf16 = run->bf16,
        .span = {.steps = run->config->train.epochs * run->train.steps,
                 .epoch_steps = run->train.steps},
        .sizes = train_sizes_of(&run->train, &run->valid),
        .partials = config->train.reproducible
                        ? train_partials(&run->train, config->train.microbatch,
                                         config->train.batch, run->teams)
                        : 0};
}

/* Local work, then the vote that nobody is missing. */
static err_code_t voted(train_state_t *run,
                        err_code_t (*work)(train_state_t *run, err_t *err),
                        err_t *err)
{
    err_code_t rc = work(run, err);

    return train_vote(&run->votes, rc, &run->speaker, err);
}

/* bf16 only where all ranks can: replicas must compute alike. Collective. */
static err_code_t precision_choose(train_state_t *run, err_t *err)
{
    double lacking = 0;
    err_code_t rc = train_bf16_choose(run->config, &run->bf16, err);

    if (run->config->train.precision != TRAIN_PRECISION_AUTO)
        return rc;
    lacking = run->bf16 ? 0 : 1;
    rc = comm_allreduce(run->group, &lacking, 1, COMM_FLOAT64, COMM_MAX, err);
    run->bf16 = lacking == 0;
    if (rc == ERR_OK && run->rank == 0)
        log_info("train", "train.precision auto: %s",
                 run->bf16 ? "bf16"
                           : "fp32, as a CPU cannot multiply bfloat16");
    return rc;
}

static err_code_t replica_make(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan;
    err_code_t rc;

    train_phase_set(run, "planning");
    rc = precision_choose(run, err);
    if (rc != ERR_OK)
        return rc;
    plan = plan_of(run);
    rc = train_replica_open(&plan, &run->replica, err);
    if (rc == ERR_OK)
        rc = train_plateau_check(run, err);
    if (rc == ERR_OK && run->rank == 0 &&
        run->config->train.scale_lr != TRAIN_SCALE_NONE)
        log_info("train",
                 "learning rate %.6g: %.6g times the optimizer's, for batch "
                 "%lld instead of %lld",
                 optim_lr(run->replica.optim), train_lr_factor(run->config),
                 (long long)run->config->train.batch,
                 (long long)run->config->train.base_batch);
    return rc;
}

static err_code_t replica_join(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan = plan_of(run);

    return train_replica_join(&plan, &run->replica, err);
}

/* ---- the first batch ---------------------------------------------------- */

static err_code_t loaders_start(train_state_t *run, err_t *err)
{
    int64_t epoch = run->progress.epoch;
    int64_t step = run->progress.epoch_step;
    train_split_t split = split_of(run, false);
    err_code_t rc;

    if (step == run->train.steps) {
        epoch++;
        step = 0;
    }
    rc = train_data_start(&split, &run->train, epoch, step, err);
    if (rc != ERR_OK)
        return rc;
    split = split_of(run, true);
    return train_data_start(&split, &run->valid, 0, 0, err);
}

/* Nothing is left that could refuse the start: now the run directory may
 * change. */
static err_code_t directory_accept(train_state_t *run, err_t *err)
{
    char *path = NULL;
    err_code_t rc;

    if (run->rank != 0)
        return ERR_OK;
    rc = train_begin_done(run, err);
    if (rc == ERR_OK)
        rc = train_rundir_accept(run->rundir, run->config, run->progress.step,
                                 err);
    if (rc != ERR_OK)
        return rc;
    path = str_printf("%s/metrics.jsonl", run->config->run.dir);
    rc = obs_metrics_open(path, run->progress.step, &run->metrics, err);
    free(path);
    return rc;
}

err_code_t train_open(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan;
    err_code_t rc;

    rc = meet(run, err);
    if (rc == ERR_OK)
        rc = voted(run, leave_boot, err);
    if (rc != ERR_OK)
        return rc;
    train_storage_begin(run, "opening data");
    rc = voted(run, data_open, err);
    if (rc == ERR_OK)
        rc = data_compare(run, err);
    if (rc == ERR_OK) {
        train_storage_begin(run, "run directory");
        rc = voted(run, directory_open, err);
    }
    train_storage_end(run);
    run->owns_dir = rc == ERR_OK;
    if (rc == ERR_OK)
        rc = voted(run, replica_make, err);
    if (rc == ERR_OK)
        rc = voted(run, replica_join, err);
    if (rc != ERR_OK)
        return rc;
    train_patience_also(run->patience, train_sync_group(run->replica.sync));
    train_storage_begin(run, "resume");
    rc = train_restore(run, err);
    if (rc == ERR_OK)
        rc = voted(run, loaders_start, err);
    if (rc == ERR_OK) {
        train_storage_begin(run, "run directory");
        rc = voted(run, directory_accept, err);
    }
    train_storage_end(run);
    if (rc != ERR_OK)
        return rc;
    run->accepted = true;
    plan = plan_of(run);
    train_phase_set(run, "initial weights");
    rc = train_replica_start(&plan, run->saved_step >= 0, &run->replica, err);
    run->first_step = run->progress.step;
    run->last_checkpoint = clock_now();
    return rc;
}

/* ---- for a benchmark ----------------------------------------------------- */

/* Steps of its epoch; those of a run are counted in advance. */
static err_code_t bench_data_plan(train_state_t *run, int64_t steps, err_t *err)
{
    train_split_t split;
    err_code_t rc;

    rc = nn_graph_open(run->config->model, run->config->loss, &run->graph, err);
    if (rc != ERR_OK)
        return rc;
    split = split_of(run, false);
    rc = train_data_plan(&split, steps, &run->train, err);
    if (rc == ERR_OK)
        run->teams = train_teams(run->config, &run->train, run->threads);
    return rc;
}

err_code_t train_open_bench(train_state_t *run, int64_t steps, err_t *err)
{
    train_replica_plan_t plan;
    err_code_t rc;

    rc = meet(run, err);
    if (rc == ERR_OK)
        rc = voted(run, leave_boot, err);
    if (rc != ERR_OK)
        return rc;
    rc = bench_data_plan(run, steps, err);
    rc = train_vote(&run->votes, rc, &run->speaker, err);
    if (rc == ERR_OK)
        rc = voted(run, replica_make, err);
    if (rc == ERR_OK)
        rc = voted(run, replica_join, err);
    if (rc != ERR_OK)
        return rc;
    plan = plan_of(run);
    return train_replica_start(&plan, false, &run->replica, err);
}

void train_close(train_state_t *run)
{
    obs_metrics_close(run->metrics);
    train_eval_close(run);
    hdf5io_marks_free(run->marks, run->mark_count);
    train_data_close(&run->valid);
    train_data_close(&run->train);
    train_patience_also(run->patience, NULL);
    train_replica_close(&run->replica);
    nn_graph_close(run->graph);
    free(run->resumed);
    train_rundir_close(run->rundir);
    train_patience_close(run->patience);
    comm_group_close(run->group);
    h5mpi_close(run->mpi);
    boot_close(run->boot);
}
