/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * All phases from the environment to the first step. After each phase in which
 * ranks work alone, they vote on its outcome. So an error of one rank ends all
 * ranks before any of them waits in a collective that the failed rank will
 * never enter.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint_data.h"
#include "train/begin.h"
#include "train/best.h"
#include "train/device.h"
#include "train/init.h"
#include "train/intro.h"
#include "train/leave.h"
#include "train/lives.h"
#include "train/lone.h"
#include "train/marks.h"
#include "train/nodeset.h"
#include "train/open.h"
#include "train/order.h"
#include "train/owner.h"
#include "train/record.h"
#include "train/run_priv.h"
#include "train/save.h"
#include "train/seen.h"
#include "train/straggler.h"
#include "train/sweeper.h"
#include "train/values.h"

/* Called while shards are opened or compared. Reports progress, as the next
 * read may be slow, too. */
static void storage_alive(void *context)
{
    train_world_t *world = context;

    train_storage_begin(world, world->phase);
}

train_split_t train_open_split(train_state_t *run, bool valid)
{
    return (train_split_t){
        .config = run->config,
        .graph = run->graph,
        .mpi = run->config->data.io == TRAIN_IO_MPI ? run->world.mpi : NULL,
        .dev = run->compute.dev,
        .look = {.group = run->world.group,
                 .alive = storage_alive,
                 .context = &run->world},
        .rank = run->world.rank,
        .size = run->world.size,
        .cores = run->compute.cores,
        .valid = valid,
        .inputs_only = valid && run->data.inputs_only};
}

/* ---- model, data, directory --------------------------------------------- */

/* Number of teams: threads of the host compute leaves side by side, a GPU one
 * after the other. */
static int teams_of(const train_state_t *run)
{
    return train_teams(run->config, &run->data.train,
                       dev_host_visible(run->compute.dev) ? run->compute.threads
                                                          : 1);
}

static err_code_t graph_open(train_state_t *run, err_t *err)
{
    err_code_t rc;

    rc = nn_graph_open(run->config->model, run->config->loss, &run->graph, err);
    run->weigh.graph = run->graph;
    run->weigh.group = run->world.group;
    if (rc == ERR_OK && run->config->train.reproducible &&
        nn_graph_syncs(run->graph) > 0)
        rc = err_set(err, ERR_CONFIG,
                     "train.reproducible computes each micro-batch alone, but "
                     "the model has syncbatchnorm layers, whose statistics "
                     "span the ranks; use batchnorm there, or leave "
                     "train.reproducible false");
    return rc;
}

/* Open the training data. Collective. */
static err_code_t train_split_open(train_state_t *run, err_t *err)
{
    const train_split_t split = train_open_split(run, false);
    err_code_t rc = train_data_open(&split, &run->data.train, err);

    if (rc != ERR_OK)
        return rc;
    rc = train_lone_check(&(train_deal_t){run->config, run->graph,
                                          &run->data.train, run->world.size,
                                          run->world.rank == 0},
                          &run->data.lone, err);
    if (rc == ERR_OK)
        run->compute.teams = teams_of(run);
    return rc;
}

/* Open the validation data. Collective. */
static err_code_t valid_split_open(train_state_t *run, err_t *err)
{
    const train_split_t split = train_open_split(run, true);
    err_code_t rc = train_data_open(&split, &run->data.valid, err);

    return rc == ERR_OK
               ? train_eval_open(run->config, run->graph, &run->data.valid,
                                 run->compute.teams, &run->evaluator, err)
               : rc;
}

err_code_t train_open_bound(train_state_t *run, err_t *err)
{
    double *bound = &run->data.valid.bound;

    return comm_broadcast(run->world.group, bound, sizeof *bound, 0, err);
}

/* Look at each number, if data.validate asks for it. Collective. */
static err_code_t values_check(train_state_t *run, const char *what,
                               const train_data_t *data, err_t *err)
{
    const train_validate_t how = (train_validate_t)run->config->data.validate;
    const train_values_t values = {.what = what,
                                   .rank = run->world.rank,
                                   .size = run->world.size,
                                   .inputs = how == TRAIN_VALIDATE_FULL,
                                   .alive = storage_alive,
                                   .context = &run->world};
    err_code_t rc;

    if (how != TRAIN_VALIDATE_FULL && how != TRAIN_VALIDATE_LABELS)
        return ERR_OK;
    train_phase_set(&run->world, "checking data");
    rc = train_values_check(&values, data->dataset, err);
    return train_world_vote(&run->world, rc, err);
}

err_code_t train_open_compare(train_state_t *run, const char *what,
                              train_data_t *data, err_t *err)
{
    const train_same_t same = {.group = run->world.group,
                               .what = what,
                               .how =
                                   (train_validate_t)run->config->data.validate,
                               .alive = storage_alive,
                               .context = &run->world};
    err_code_t rc;

    train_phase_set(&run->world, "comparing data");
    rc = train_same(&same, data->dataset, &data->marks, err);
    rc = train_world_vote(&run->world, rc, err);
    return rc == ERR_OK ? values_check(run, what, data, err) : rc;
}

/* Check that all ranks see equal samples. Collective. */
static err_code_t data_compare(train_state_t *run, err_t *err)
{
    const train_split_t split = train_open_split(run, false);
    err_code_t rc =
        train_open_compare(run, "data.train", &run->data.train, err);

    if (rc == ERR_OK)
        rc =
            train_order_agree(&run->world.votes, &split, &run->data.train, err);
    if (rc == ERR_OK && run->data.valid.dataset != NULL)
        rc = train_open_compare(run, "data.valid", &run->data.valid, err);
    if (rc != ERR_OK)
        return rc;
    rc = train_marks_list(&run->data.train, &run->data.valid, &run->data.marks,
                          &run->data.mark_count, err);
    return train_world_vote(&run->world, rc, err);
}

static err_code_t directory_open(train_state_t *run, err_t *err)
{
    char *owner;
    err_code_t rc;

    if (run->world.rank != 0)
        return ERR_OK;
    owner = train_owner_text(run->env->job);
    rc = train_rundir_open(run->config->run.dir, owner, &run->dir.lock, err);
    free(owner);
    return rc;
}

/* Arenas of partial sums of gradients. Without training data nothing is
 * trained, and the least number will do. */
static int partials_of(const train_state_t *run)
{
    const train_config_t *config = run->config;

    if (!config->train.reproducible)
        return 0;
    if (run->data.train.sampler == NULL)
        return 1;
    return train_partials(&run->data.train, config->train.microbatch,
                          config->train.batch, run->compute.teams);
}

static train_replica_plan_t plan_of(train_state_t *run)
{
    const train_config_t *config = run->config;

    return (train_replica_plan_t){
        .config = run->config,
        .graph = run->graph,
        .group = run->world.group,
        .data = run->world.data,
        .rank = run->world.rank,
        .ranks = run->world.size,
        .threads = run->compute.threads,
        .cores = run->compute.cores,
        .teams = run->compute.teams,
        .team_threads = train_team_threads(config, run->compute.threads),
        .dev = run->compute.dev,
        .compute_type = run->compute.type,
        .span = {.steps = run->config->train.epochs * run->data.train.steps,
                 .epoch_steps = run->data.train.steps},
        .sizes = train_sizes_of(&run->data.train, &run->data.valid),
        .samples = train_samples_of(&run->data.train, &run->data.valid),
        .partials = partials_of(run)};
}

err_code_t train_open_voted(train_state_t *run,
                            err_code_t (*work)(train_state_t *run, err_t *err),
                            err_t *err)
{
    err_code_t rc = work(run, err);

    rc = train_leave_start(run, rc, err);
    return train_world_vote(&run->world, rc, err);
}

/* Begin to open the model's execs. What takes long, a thread does while other
 * data is opened. */
static err_code_t replica_begin(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan;
    err_code_t rc;

    train_phase_set(&run->world, "planning");
    rc = train_precision_choose(run->config, run->compute.dev, run->world.group,
                                &run->compute.type, err);
    if (rc != ERR_OK)
        return rc;
    plan = plan_of(run);
    return train_replica_begin(&plan, &run->replica, err);
}

static err_code_t replica_open(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan = plan_of(run);
    err_code_t rc;

    train_phase_set(&run->world, "planning");
    rc = train_replica_open(&plan, &run->replica, err);
    run->plateau = (train_plateau_t){.schedule = run->replica.schedule,
                                     .optim = run->replica.optim,
                                     .progress = &run->progress,
                                     .logs = run->world.rank == 0};
    if (rc == ERR_OK)
        rc = train_plateau_check(&run->plateau, run->config, &run->evaluator,
                                 err);
    if (rc == ERR_OK && run->world.rank == 0 &&
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
    err_code_t rc = train_replica_join(&plan, &run->replica, err);

    run->world.sync = train_sync_group(run->replica.sync);
    return rc;
}

/* ---- what steps need ----------------------------------------------------- */

/* Start to read training samples at the run's place in its epoch. */
static err_code_t loader_start(train_state_t *run, err_t *err)
{
    int64_t epoch = run->progress.epoch;
    int64_t step = run->progress.epoch_step;
    train_split_t split = train_open_split(run, false);
    err_code_t rc;

    rc = hdf5io_sampler_old_epoch(
        run->data.train.sampler,
        train_order_old(&run->progress, run->data.train.steps),
        &run->progress.order, err);
    if (rc != ERR_OK)
        return rc;
    if (step == run->data.train.steps) {
        epoch++;
        step = 0;
    }
    return train_data_start(&split, &run->data.train, epoch, step, err);
}

err_code_t train_loader_restart(train_state_t *run, err_t *err)
{
    train_data_stop(&run->data.train);
    return loader_start(run, err);
}

/* Open the loaders, and what watches and traces the steps. */
static err_code_t loaders_start(train_state_t *run, err_t *err)
{
    train_split_t split = train_open_split(run, true);
    err_code_t rc = train_trace_open(run, err);

    run->data.train.told = hdf5io_dataset_reads(run->data.train.dataset);
    if (rc == ERR_OK)
        train_stage_open(run->config, run->world.group, run->compute.local,
                         &run->data.train, &run->data.valid, &run->stage);
    if (rc == ERR_OK)
        rc = loader_start(run, err);
    if (rc == ERR_OK)
        rc = train_data_start(&split, &run->data.valid, 0, 0, err);
    return rc == ERR_OK ? train_straggler_open(run, err) : rc;
}

/* To be called when nothing can refuse the start any more: the run directory
 * may change. */
static err_code_t directory_accept(train_state_t *run, err_t *err)
{
    err_code_t rc;

    if (run->world.rank != 0)
        return train_record_open(run, err);
    rc = train_nodeset_leave(run, err);
    if (rc == ERR_OK)
        rc = train_begin_done(&run->dir, run->progress.step, err);
    if (rc == ERR_OK)
        rc = train_rundir_accept(run->dir.lock, run->config, run->progress.step,
                                 err);
    return rc == ERR_OK ? train_record_open(run, err) : rc;
}

void train_state_init(train_state_t *run, const train_config_t *config,
                      const train_env_t *env, boot_t *boot)
{
    *run = (train_state_t){
        .config = config,
        .env = env,
        .world = {.boot = boot,
                  .rank = boot_rank(boot),
                  .size = boot_size(boot),
                  .phase = "start",
                  .step = &run->progress.step},
        .dir = {.path = config->run.dir,
                .env = env,
                .saved_step = -1,
                .checkpoint_step = -1},
        .progress = {.seed = (uint64_t)config->run.seed, .best = -1.0},
        .last_eval = {.found = {.accuracy = NAN}, .step = -1}};
    run->world.speaker = run->world.rank == 0;
    log_rank_set(run->world.rank);
}

/* Open the data and the run directory, and begin the replica as soon as the
 * sizes of its batches are known. Collective. */
static err_code_t storage_open(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_storage_begin(&run->world, "opening data");
    rc = train_open_voted(run, graph_open, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, train_split_open, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, valid_split_open, err);
    if (rc == ERR_OK)
        rc = train_open_bound(run, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, replica_begin, err);
    if (rc == ERR_OK)
        rc = data_compare(run, err);
    if (rc == ERR_OK) {
        train_storage_begin(&run->world, "run directory");
        rc = train_open_voted(run, directory_open, err);
    }
    train_storage_end(&run->world);
    run->dir.owned = rc == ERR_OK;
    return rc;
}

/* Finish the replica. Collective. */
static err_code_t replica_make(train_state_t *run, err_t *err)
{
    err_code_t rc = train_open_voted(run, replica_open, err);

    return rc == ERR_OK ? train_open_voted(run, replica_join, err) : rc;
}

err_code_t train_open_init_check(train_state_t *run, err_t *err)
{
    return run->world.rank == 0 ? train_init_check(run->config, run->graph, err)
                                : ERR_OK;
}

/* Read the checkpoint and open the loaders. Then nothing can refuse the start
 * any more, and the run directory is changed. Collective. */
static err_code_t position_read(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_storage_begin(&run->world, "resume");
    rc = train_restore(run, err);
    if (rc == ERR_OK && run->dir.saved_step < 0 &&
        train_init_given(run->config))
        rc = train_open_voted(run, train_open_init_check, err);
    if (rc == ERR_OK)
        rc = train_stage_agree(run->config, run->world.group, &run->stage, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, loaders_start, err);
    if (rc == ERR_OK) {
        train_storage_begin(&run->world, "run directory");
        rc = train_open_voted(run, directory_accept, err);
    }
    if (rc == ERR_OK)
        rc = train_nodeset_accept(run, err);
    train_storage_end(&run->world);
    run->dir.accepted = rc == ERR_OK;
    if (rc == ERR_OK && run->world.rank == 0) {
        train_seen_past(run);
        train_lives_begin(run);
        train_leave_past(run);
        train_sweeper_ask(run->saving.sweeper);
    }
    return rc;
}

err_code_t train_open(train_state_t *run, err_t *err)
{
    train_replica_plan_t plan;
    err_code_t rc;

    rc = train_join(run, err);
    if (rc == ERR_OK)
        rc = storage_open(run, err);
    if (rc == ERR_OK)
        rc = replica_make(run, err);
    if (rc != ERR_OK)
        return rc;
    train_patience_also(run->world.patience, run->world.sync);
    rc = train_save_open(run, err);
    if (rc == ERR_OK)
        rc = position_read(run, err);
    if (rc == ERR_OK)
        rc = train_best_open(run, err);
    if (rc != ERR_OK)
        return rc;
    plan = plan_of(run);
    /* Rank 0 may read the weights from a large checkpoint (checkpoint.init). */
    train_storage_begin(&run->world, "initial weights");
    rc = train_replica_start(&plan, run->dir.saved_step >= 0, &run->replica,
                             err);
    train_storage_end(&run->world);
    rc = train_leave_start(run, rc, err);
    rc = train_world_vote(&run->world, rc, err);
    run->world.working = rc == ERR_OK && !dev_host_visible(run->compute.dev);
    run->life.first_step = run->progress.step;
    run->dir.saved_at = clock_now();
    if (rc == ERR_OK)
        train_seen_open(run);
    if (rc == ERR_OK)
        train_intro_print(run);
    return rc;
}

/* ---- for a benchmark ----------------------------------------------------- */

/* Plan [steps] steps per epoch without reading data. The steps of the whole run
 * are known in advance. */
static err_code_t bench_data_plan(train_state_t *run, int64_t steps, err_t *err)
{
    train_split_t split;
    err_code_t rc;

    rc = nn_graph_open(run->config->model, run->config->loss, &run->graph, err);
    if (rc != ERR_OK)
        return rc;
    run->weigh.graph = run->graph;
    run->weigh.group = run->world.group;
    split = train_open_split(run, false);
    rc = train_data_plan(&split, steps, &run->data.train, err);
    if (rc == ERR_OK)
        run->compute.teams = teams_of(run);
    return rc;
}

err_code_t train_open_replica(train_state_t *run, err_t *err)
{
    err_code_t rc = train_open_voted(run, replica_begin, err);

    return rc == ERR_OK ? replica_make(run, err) : rc;
}

err_code_t train_open_start(train_state_t *run, bool restored, err_t *err)
{
    const train_replica_plan_t plan = plan_of(run);
    err_code_t rc;

    train_storage_begin(&run->world, "initial weights");
    rc = train_replica_start(&plan, restored, &run->replica, err);
    train_storage_end(&run->world);
    return train_world_vote(&run->world, rc, err);
}

err_code_t train_open_bench(train_state_t *run, int64_t steps, err_t *err)
{
    err_code_t rc;

    rc = train_join(run, err);
    if (rc != ERR_OK)
        return rc;
    rc = bench_data_plan(run, steps, err);
    rc = train_world_vote(&run->world, rc, err);
    if (rc == ERR_OK)
        rc = train_open_replica(run, err);
    return rc == ERR_OK ? train_open_start(run, false, err) : rc;
}

void train_close(train_state_t *run)
{
    train_save_close(run);
    train_replica_idle(&run->replica);
    train_replay_close(&run->replay);
    train_straggler_end(run);
    train_record_close(run);
    train_straggler_close(&run->straggler);
    train_eval_close(&run->evaluator);
    hdf5io_marks_free(run->data.marks, run->data.mark_count);
    train_data_close(&run->data.valid);
    train_data_close(&run->data.train);
    train_stage_close(&run->stage);
    train_patience_only(run->world.patience);
    run->world.sync = NULL;
    train_replica_close(&run->replica);
    train_trace_close(&run->trace);
    nn_graph_close(run->graph);
    free(run->dir.resumed);
    train_rundir_close(run->dir.lock);
    train_patience_close(run->world.patience);
    train_world_data_close(&run->world);
    comm_group_close(run->world.group);
    dev_close(run->compute.dev);
    free(run->compute.versions);
    h5mpi_close(run->world.mpi);
    boot_close(run->world.boot);
}
