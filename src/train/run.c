/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The loop. A run is a position (epoch, step of the epoch) that moves to the
 * end; wherever it is left, by a checkpoint at a step boundary, it can be taken
 * up again, also in the middle of an epoch or between its last step and its
 * evaluation. All ranks walk through this file in lockstep: every decision
 * hangs on numbers that all of them share.
 */
#include "train/run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "obs/progress.h"
#include "obs/summary.h"
#include "train/last_words.h"
#include "train/plateau.h"
#include "train/run_priv.h"

/* ---- evaluation --------------------------------------------------------- */

static bool every_hit(const opt_every_t *every, opt_unit_t unit, int64_t count)
{
    return every->unit == unit && every->value >= 1.0 &&
           count % (int64_t)every->value == 0;
}

static err_code_t evaluate(train_state_t *run, err_t *err)
{
    const hdf5io_progress_t *progress = &run->progress;
    train_eval_t eval;
    err_code_t rc;

    if (run->valid.dataset == NULL)
        return ERR_OK;
    rc = train_evaluate(run, &eval, err);
    if (rc != ERR_OK)
        return rc;
    if (eval.stopped) {
        run->stop = true;
        return ERR_OK;
    }
    run->eval = eval;
    run->eval_step = progress->step;
    train_plateau_eval(run, &eval);
    if (eval.accuracy > run->progress.best)
        run->progress.best = eval.accuracy;
    if (run->metrics != NULL)
        obs_metrics_eval(run->metrics,
                         &(obs_eval_t){.step = progress->step,
                                       .epoch = progress->epoch,
                                       .loss = eval.loss,
                                       .accuracy = eval.accuracy,
                                       .values = eval.values,
                                       .value_count = eval.value_count});
    return ERR_OK;
}

/* ---- step and epoch boundaries ------------------------------------------ */

static void epoch_print(const train_state_t *run)
{
    const hdf5io_progress_t *progress = &run->progress;
    bool fresh = run->eval_step == progress->step;

    if (run->rank != 0)
        return;
    obs_progress_epoch(&(obs_epoch_t){
        .epoch = progress->epoch + 1,
        .epochs = run->config->train.epochs,
        .step = progress->step,
        .loss = progress->loss_sum / (double)progress->loss_count,
        .valid_loss = fresh ? run->eval.loss : NAN,
        .accuracy = fresh ? run->eval.accuracy : NAN,
        .values = run->eval.values,
        .value_count = fresh ? run->eval.value_count : 0,
        .seconds = clock_now() - run->env->started});
}

static void epoch_advance(hdf5io_progress_t *progress)
{
    progress->epoch++;
    progress->epoch_step = 0;
    progress->samples = 0;
    progress->loss_sum = 0.0;
    progress->loss_count = 0;
    progress->correct = 0;
}

/* ddp.check_every: before a checkpoint could keep what has drifted. */
static err_code_t replica_verify(train_state_t *run, err_t *err)
{
    size_t bytes = nn_graph_param_elems(run->graph) * sizeof(float);

    train_phase_set(run, "replica check");
    run->speaker = run->rank == 0;
    return ddp_replica_check(run->replica.ddp, run->replica.params, bytes, err);
}

/* Whoever was asked to end while a checkpoint was written may have no time for
 * another step and another checkpoint. A run that is complete ends anyway. */
static err_code_t stop_ask(train_state_t *run, err_t *err)
{
    double asked;
    err_code_t rc;

    if (run->progress.epoch >= run->config->train.epochs)
        return ERR_OK;
    asked = run->env->signal() != SLURM_SIGNAL_NONE ? 1.0 : 0.0;
    rc = comm_allreduce(run->group, &asked, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc == ERR_OK && asked > 0)
        run->stop = run->saved = true;
    return rc;
}

/* What is due, in this order, once ranks are equal: check before a checkpoint
 * keeps what has drifted. A run that is to stop only saves, when it leaves. */
static err_code_t due_do(train_state_t *run, err_t *err)
{
    train_due_t due = run->due;
    err_code_t rc = ERR_OK;

    if (!due.check && !due.evaluate && !due.save)
        return ERR_OK;
    if (train_local_apart(run))
        return ERR_OK;
    run->due = (train_due_t){0};
    if (due.check)
        rc = replica_verify(run, err);
    if (rc == ERR_OK && due.evaluate && !run->stop)
        rc = evaluate(run, err);
    if (rc == ERR_OK && due.save && !run->stop) {
        rc = train_checkpoint(run, err);
        if (rc == ERR_OK)
            rc = stop_ask(run, err);
    }
    return rc;
}

/* Is a checkpoint due at the end of the epoch in progress? */
static bool epoch_saves(const train_state_t *run)
{
    const train_config_t *config = run->config;
    const int64_t done = run->progress.epoch + 1;

    return done == config->train.epochs ||
           every_hit(&config->checkpoint.every, OPT_EPOCHS, done);
}

static err_code_t step_end(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    int64_t step = run->progress.step;

    if (step == run->first_step + 1) {
        run->first_step_s = clock_since_start();
        run->main_to_step_s = clock_now() - run->env->started;
        run->first_step_at = clock_wall();
        if (run->rank == 0)
            log_info("train",
                     "first step done %.2f s after the process was started",
                     run->first_step_s);
    }
    run->due.check |= every_hit(&config->ddp.check_every, OPT_STEPS, step);
    run->due.evaluate |= every_hit(&config->train.eval_every, OPT_STEPS, step);
    run->due.save |= run->checkpoint_due ||
                     every_hit(&config->checkpoint.every, OPT_STEPS, step);
    /* The end of the epoch saves this very step: once is enough. */
    if (run->progress.epoch_step == run->train.steps && epoch_saves(run))
        run->due.save = false;
    return due_do(run, err);
}

/* After the last step of an epoch: evaluate, say so, save if it is time. */
static err_code_t epoch_end(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    int64_t done = run->progress.epoch + 1;
    bool last = done == config->train.epochs;
    err_code_t rc = ERR_OK;

    if ((last || every_hit(&config->train.eval_every, OPT_EPOCHS, done)) &&
        run->eval_step != run->progress.step)
        run->due.evaluate = true;
    rc = due_do(run, err);
    if (rc != ERR_OK || run->stop)
        return rc;
    epoch_print(run);
    run->due.save |= epoch_saves(run);
    train_plateau_epoch(run);
    epoch_advance(&run->progress);
    return due_do(run, err);
}

/* Leave so that the next life goes on here. */
static err_code_t leave(train_state_t *run, err_t *err)
{
    err_code_t rc = run->saved ? ERR_OK : train_checkpoint(run, err);

    if (rc != ERR_OK)
        return rc;
    run->speaker = run->rank == 0;
    return err_set(err, ERR_REQUEUE,
                   "asked to stop: checkpointed at step %lld of epoch %lld; "
                   "start it again (without --fresh or --resume) to go on from "
                   "there",
                   (long long)run->progress.step,
                   (long long)run->progress.epoch + 1);
}

/* A life that was left in the evaluation of its last step owes that to the
 * schedule, if it watches. */
static err_code_t eval_catch_up(train_state_t *run, err_t *err)
{
    const int64_t step = run->progress.step;

    run->due.evaluate =
        step > 0 && train_plateau_owed(run) &&
        every_hit(&run->config->train.eval_every, OPT_STEPS, step);
    return due_do(run, err);
}

static err_code_t loop(train_state_t *run, err_t *err)
{
    int64_t epochs = run->config->train.epochs;
    err_code_t rc = eval_catch_up(run, err);

    while (rc == ERR_OK && !run->stop) {
        if (run->progress.epoch_step == run->train.steps) {
            rc = epoch_end(run, err);
            continue;
        }
        if (run->progress.epoch >= epochs)
            break;
        rc = train_step(run, err);
        if (rc == ERR_OK)
            rc = step_end(run, err);
    }
    if (rc == ERR_OK && run->stop)
        rc = leave(run, err);
    return rc;
}

/* ---- the end ------------------------------------------------------------ */

/* A run that was complete already is evaluated again, to show its numbers. */
static err_code_t finish(train_state_t *run, err_t *err)
{
    if (run->eval_step == run->progress.step)
        return ERR_OK;
    return evaluate(run, err);
}

static void outcome_fill(const train_state_t *run, train_outcome_t *out)
{
    out->speaker = run->speaker;
    out->have_eval = run->eval_step >= 0;
    out->loss = run->eval.loss;
    out->accuracy = run->eval.accuracy;
    out->bound = run->valid.bound;
    out->step = run->progress.step;
}

/* The lowest rank that surely lives speaks and writes for all. With a rank its
 * whole node may be gone, so one of another node does, if there is any. */
static bool lowest_survivor(const train_state_t *run, err_code_t rc,
                            const err_t *err)
{
    int culprit = rc == ERR_PEER ? err->culprit : -1;

    if (culprit < 0)
        return run->rank == 0;
    for (int r = 0; run->group != NULL && r < run->size; r++)
        if (strcmp(comm_group_host(run->group, r),
                   comm_group_host(run->group, culprit)) != 0)
            return run->rank == r;
    return run->rank == (culprit == 0 ? 1 : 0);
}

/* A start that was refused changes nothing in the run directory, and leaves no
 * record: all ranks end with its status, so that srun's is the right one. One
 * that fails may, to tell whose fault it was. */
static bool start_refused(const train_state_t *run, err_code_t rc)
{
    return !run->accepted && !err_code_requeue(rc);
}

/* A record of what happened already: that it cannot be written is told, and
 * changes no status. */
static void record_write(const train_state_t *run, err_code_t rc,
                         const err_t *err)
{
    err_t trouble = ERR_INIT;
    slurm_exit_t record = {.job = run->env->job,
                           .status = rc,
                           .rank = run->rank,
                           .culprit = rc == ERR_OK ? -1 : err->culprit,
                           .culprit_host = rc == ERR_OK ? "" : err->host,
                           .phase = run->phase,
                           .step = run->progress.step,
                           .text = rc == ERR_OK ? "" : err->text};

    if (run->owns_dir && !start_refused(run, rc) &&
        lowest_survivor(run, rc, err) &&
        slurm_exit_write(run->config->run.dir, &record, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
}

/* A start that was refused keeps the results of an earlier life. */
static err_code_t summary_write(const train_state_t *run, err_code_t rc,
                                const err_t *why, err_t *err)
{
    obs_summary_t summary = {
        .status = rc,
        .step = run->progress.step,
        .epoch = run->progress.epoch,
        .loss = run->eval_step >= 0 ? run->eval.loss : NAN,
        .accuracy = run->eval_step >= 0 ? run->eval.accuracy : NAN,
        .values = run->eval.values,
        .value_count = run->eval_step >= 0 ? run->eval.value_count : 0,
        .bound = run->valid.bound,
        .seconds = clock_now() - run->env->started,
        .first_step_s = run->first_step_s,
        .main_to_step_s = run->main_to_step_s,
        .first_step_at = run->first_step_at,
        .data_share = run->step_s > 0.0 ? run->data_s / run->step_s : 0.0,
        .peak_rss_mb =
            1e-6 * (run->peak_rss > 0.0 ? run->peak_rss : mem_peak()),
        .world_size = run->size};

    if (!run->opened || !run->owns_dir || !lowest_survivor(run, rc, why))
        return ERR_OK;
    return obs_summary_write(run->config->run.dir, &summary, err);
}

/* The end of a run that failed: its reason matters more than its numbers. */
static void summary_try(const train_state_t *run, err_code_t rc,
                        const err_t *why)
{
    err_t trouble = ERR_INIT;

    if (summary_write(run, rc, why, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
}

/* A run is done when its results are published and every rank has seen it:
 * whoever is lost until then is a fault like any other. A summary that cannot
 * be written would leave that of an earlier life. */
static err_code_t part(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_phase_set(run, "shutdown");
    run->peak_rss = mem_peak();
    rc = comm_allreduce(run->group, &run->peak_rss, 1, COMM_FLOAT64, COMM_MAX,
                        err);
    if (rc != ERR_OK)
        return rc;
    train_storage_begin(run, "shutdown");
    rc = summary_write(run, ERR_OK, NULL, err);
    train_storage_end(run);
    return train_vote(&run->votes, rc, &run->speaker, err);
}

/* Ranks that are threads of one process have no network. */
static void words_arm(const train_state_t *run)
{
    const slurm_job_t *job = run->env->job;

    if (job->step_id[0] == '\0' || run->group == NULL ||
        strcmp(comm_group_backend(run->group), "ucx") != 0)
        return;
    train_last_words_arm(&(train_last_words_t){.dir = run->config->run.dir,
                                               .step_id = job->step_id,
                                               .restarts = job->restarts,
                                               .rank = run->rank,
                                               .guilty = comm_in_transport});
}

err_code_t train_run(const train_config_t *config, const train_env_t *env,
                     boot_t *boot, train_outcome_t *out, err_t *err)
{
    train_state_t run = {
        .config = config,
        .env = env,
        .boot = boot,
        .rank = boot_rank(boot),
        .size = boot_size(boot),
        .eval_step = -1,
        .saved_step = -1,
        .eval = {.accuracy = NAN},
        .progress = {.seed = (uint64_t)config->run.seed, .best = -1.0},
        .phase = "start"};
    err_code_t rc;

    run.speaker = run.rank == 0;
    log_rank_set(run.rank);
    rc = train_open(&run, err);
    run.opened = rc == ERR_OK;
    if (rc == ERR_OK)
        words_arm(&run);
    if (rc == ERR_OK)
        rc = loop(&run, err);
    if (rc == ERR_OK)
        rc = finish(&run, err);
    if (rc == ERR_OK)
        rc = part(&run, err);
    if (rc == ERR_PEER)
        run.speaker = lowest_survivor(&run, rc, err);
    if (rc == ERR_PEER && run.speaker && run.owns_dir)
        train_last_words_hear(config->run.dir, env->job->step_id,
                              env->job->restarts, err);
    record_write(&run, rc, err);
    if (start_refused(&run, rc))
        train_rundir_refuse(run.rundir);
    if (rc != ERR_OK)
        summary_try(&run, rc, err);
    outcome_fill(&run, out);
    train_close(&run);
    return rc;
}
