/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The training loop. The position of a run is (epoch, step of the epoch). A
 * checkpoint at a step boundary stores it, also in the middle of an epoch, or
 * between the last step of an epoch and its evaluation. A later life resumes
 * from this position. All ranks go through this file in lockstep: every
 * decision depends only on numbers that are equal on all ranks.
 */
#include "train/run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/best.h"
#include "train/last_words.h"
#include "train/leave.h"
#include "train/lives.h"
#include "train/nodeset.h"
#include "train/outcome.h"
#include "train/predict.h"
#include "train/record.h"
#include "train/rollback.h"
#include "train/save.h"
#include "train/save_failed.h"
#include "train/seen.h"
#include "train/step.h"
#include "train/straggler.h"
#include "train/sweeper.h"

/* Seconds between two looks for a signal while the run waits for deletes. */
#define DELETES_LOOK 0.2

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
    double span;
    err_code_t rc;

    if (run->data.valid.dataset == NULL)
        return ERR_OK;
    train_seen_mark(run, OBS_SPENT_OTHER);
    span = trace_begin(train_trace_own(&run->trace));
    rc = train_evaluate(run, &eval, err);
    trace_end(train_trace_own(&run->trace), span, "evaluation", NULL,
              TRACE_NO_NUMBER);
    train_seen_mark(run, OBS_SPENT_EVAL);
    if (rc != ERR_OK)
        return rc;
    if (eval.stopped) {
        run->agreed.stop = true;
        return ERR_OK;
    }
    run->last_eval.found = eval;
    run->last_eval.step = progress->step;
    train_plateau_eval(&run->plateau, &eval);
    if (eval.accuracy > run->progress.best)
        run->progress.best = eval.accuracy;
    run->agreed.best |= train_best_eval(run, &eval);
    train_record_eval(run, &eval);
    train_seen_eval(run, &eval);
    return ERR_OK;
}

/* ---- step and epoch boundaries ------------------------------------------ */

static void epoch_print(const train_state_t *run)
{
    const hdf5io_progress_t *progress = &run->progress;
    const bool fresh = run->last_eval.step == progress->step;
    const double now = clock_now();
    const obs_epoch_t epoch = {
        .epoch = progress->epoch + 1,
        .epochs = run->config->train.epochs,
        .step = progress->step,
        .loss = progress->loss_sum / (double)progress->loss_count,
        .valid_loss = fresh ? run->last_eval.found.loss : NAN,
        .accuracy = fresh ? run->last_eval.found.accuracy : NAN,
        .values = run->last_eval.found.values,
        .value_count = fresh ? run->last_eval.found.value_count : 0,
        .seconds = now - run->env->started};

    obs_progress_epoch(run->seen.progress, &epoch, now);
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

/* Check that the replicas are equal (ddp.check_every), before a checkpoint
 * could store parameters that have drifted. */
static err_code_t replica_verify(train_state_t *run, err_t *err)
{
    uint64_t hash = 0;
    err_code_t rc;

    train_phase_set(&run->world, "replica check");
    rc = train_replica_hash(&run->replica, &hash, err);
    if (!dev_host_visible(run->replica.dev))
        rc = train_world_vote(&run->world, rc, err);
    run->world.speaker = run->world.rank == 0;
    return rc == ERR_OK ? ddp_replica_check(run->replica.ddp, hash, err) : rc;
}

/* Ask once more whether to stop. A rank that got a signal while a checkpoint
 * was written may have no time for another step and another checkpoint: then
 * all ranks end with this checkpoint. A complete run ends anyway. */
static err_code_t stop_ask(train_state_t *run, err_t *err)
{
    double asked;
    err_code_t rc;

    if (run->progress.epoch >= run->config->train.epochs)
        return ERR_OK;
    asked = train_leave_asked(run) != SLURM_SIGNAL_NONE ? 1.0 : 0.0;
    rc = comm_allreduce(run->world.group, &asked, 1, COMM_FLOAT64, COMM_MAX,
                        err);
    if (rc == ERR_OK && asked > 0)
        run->agreed.stop = run->agreed.saved = true;
    return rc;
}

/* After the first step of a life: ask whether there is time for another step.
 * Later steps ask when they begin (train_deadline_instant), but when the first
 * one began, nobody knew how long a step takes. */
static err_code_t time_ask(train_state_t *run, err_t *err)
{
    double late = train_leave_late(run) ? 1.0 : 0.0;
    err_code_t rc;

    if (run->env->job->id[0] == '\0' || run->agreed.stop || run->local.apart)
        return ERR_OK;
    rc =
        comm_allreduce(run->world.group, &late, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc == ERR_OK && late > 0)
        run->agreed.stop = true;
    return rc;
}

/* Save, in the thread unless this is the end of the run. A signal that comes
 * while the thread writes is found in the next step. */
static err_code_t save_due(train_state_t *run, err_t *err)
{
    const bool last = run->progress.epoch >= run->config->train.epochs;
    const bool behind = run->saving.behind && !last;
    trace_t *trace = train_trace_own(&run->trace);
    const double span = trace_begin(trace);
    err_code_t rc =
        behind ? train_save_begin(run, err) : train_save(run, last, err);
    const bool saved = run->dir.checkpoint_step == run->progress.step;

    trace_end(trace, span, "checkpoint", NULL, TRACE_NO_NUMBER);
    return rc == ERR_OK && !behind && saved ? stop_ask(run, err) : rc;
}

/* Do what is due, if all ranks are equal. The replica check comes first, so
 * that no checkpoint stores parameters that have drifted. A run that is about
 * to stop writes its checkpoint when it leaves. */
static err_code_t due_do(train_state_t *run, err_t *err)
{
    train_due_t due = run->agreed.due;
    err_code_t rc = ERR_OK;

    if (!due.check && !due.evaluate && !due.save)
        return ERR_OK;
    if (train_local_apart(run))
        return ERR_OK;
    run->agreed.due = (train_due_t){0};
    if (due.check)
        rc = replica_verify(run, err);
    if (rc == ERR_OK && due.evaluate && !run->agreed.stop)
        rc = evaluate(run, err);
    /* At the end of an epoch, the next call saves what begins the next one. */
    if (run->progress.epoch_step == run->data.train.steps)
        run->agreed.due.save |= run->agreed.best;
    else
        due.save |= run->agreed.best;
    run->agreed.best = false;
    if (rc == ERR_OK && due.save && !run->agreed.stop)
        rc = save_due(run, err);
    return rc;
}

/* Return whether a checkpoint is due at the end of the current epoch. */
static bool epoch_saves(const train_config_t *config, int64_t epoch)
{
    const int64_t done = epoch + 1;

    return done == config->train.epochs ||
           every_hit(&config->checkpoint.every, OPT_EPOCHS, done);
}

/* The first step of this life is done. */
static void first_step_note(train_state_t *run)
{
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_FIRST_STEP, run->progress.step);

    run->life.first_step_s = clock_since_start();
    run->life.main_to_step_s = clock_now() - run->env->started;
    run->life.first_step_at = clock_wall();
    if (run->world.rank != 0)
        return;
    log_info("train", "first step done %.2f s after the process was started",
             run->life.first_step_s);
    line.seconds = run->life.first_step_s;
    train_lives_add(run, &line);
}

/* Work between two steps: decide what is due, and do it. */
static err_code_t step_boundary(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    int64_t step = run->progress.step;
    bool saves;
    err_code_t rc = ERR_OK;

    if (step == run->life.first_step + 1 && run->life.first_step_at == 0) {
        first_step_note(run);
        train_straggler_begin(run);
        rc = time_ask(run, err);
    }
    if (rc == ERR_OK && run->agreed.ended)
        rc = train_save_join(run, false, err);
    if (rc == ERR_OK && run->agreed.look && !run->agreed.stop)
        rc = train_straggler_look(run, err);
    if (rc != ERR_OK)
        return rc;
    run->agreed.due.check |=
        every_hit(&config->ddp.check_every, OPT_STEPS, step);
    run->agreed.due.evaluate |=
        every_hit(&config->train.eval_every, OPT_STEPS, step);
    run->agreed.due.save |=
        run->agreed.checkpoint ||
        every_hit(&config->checkpoint.every, OPT_STEPS, step) ||
        train_save_again(run);
    /* The end of the epoch will write the checkpoint of this step. A local
     * checkpoint of this step would only delay the checkpoint. */
    saves = run->progress.epoch_step == run->data.train.steps &&
            epoch_saves(config, run->progress.epoch);
    if (saves)
        run->agreed.due.save = false;
    rc = due_do(run, err);
    return rc == ERR_OK && !saves && train_nodeset_due(run)
               ? train_save_nodes(run, err)
               : rc;
}

/* After the last step of an epoch: evaluate, print a line, save if due. */
static err_code_t epoch_end(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    int64_t done = run->progress.epoch + 1;
    bool last = done == config->train.epochs;
    err_code_t rc = ERR_OK;

    if ((last || every_hit(&config->train.eval_every, OPT_EPOCHS, done)) &&
        run->last_eval.step != run->progress.step)
        run->agreed.due.evaluate = true;
    rc = due_do(run, err);
    if (rc != ERR_OK || run->agreed.stop)
        return rc;
    epoch_print(run);
    run->agreed.due.save |= epoch_saves(config, run->progress.epoch);
    train_plateau_epoch(&run->plateau);
    epoch_advance(&run->progress);
    return due_do(run, err);
}

/* Add the signal that ends this life to the history. Rank 0 may not have got it
 * itself. */
static void signal_note(const train_state_t *run, slurm_signal_t signal)
{
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_SIGNAL, run->progress.step);

    line.detail = slurm_signal_name(signal);
    if (run->world.rank == 0)
        train_lives_add(run, &line);
}

/* Write a checkpoint, from which the next life resumes, and end with
 * ERR_REQUEUE. */
static err_code_t leave(train_state_t *run, err_t *err)
{
    const slurm_signal_t signal = train_leave_asked(run);
    err_code_t rc = ERR_OK;

    signal_note(run, signal);
    if (!run->agreed.saved)
        rc = train_save(run, true, err);
    if (rc != ERR_OK)
        return rc;
    run->world.speaker = run->world.rank == 0;
    return err_set(err, ERR_REQUEUE,
                   "%s: checkpointed at step %lld of epoch %lld; "
                   "start it again (without --fresh or --resume) to go on from "
                   "there",
                   signal == SLURM_SIGNAL_TIME ? "the time limit is near"
                                               : "asked to stop",
                   (long long)run->progress.step,
                   (long long)run->progress.epoch + 1);
}

/* Evaluate again if the schedule watches a metric of evaluations, and the
 * earlier life ended during the evaluation after its last step: then the
 * schedule has not got this value. */
static err_code_t eval_catch_up(train_state_t *run, err_t *err)
{
    const int64_t step = run->progress.step;

    run->agreed.due.evaluate =
        step > 0 && train_plateau_needs_eval(&run->plateau) &&
        every_hit(&run->config->train.eval_every, OPT_STEPS, step);
    return due_do(run, err);
}

/* Train until the run is complete or has to stop. */
static err_code_t steps_make(train_state_t *run, err_t *err)
{
    int64_t epochs = run->config->train.epochs;
    double begin, end;
    err_code_t rc = eval_catch_up(run, err);

    while (rc == ERR_OK && !run->agreed.stop) {
        if (run->progress.epoch_step == run->data.train.steps) {
            rc = epoch_end(run, err);
            continue;
        }
        if (run->progress.epoch >= epochs)
            break;
        begin = clock_now();
        obs_spent_mark(&run->seen.spent, OBS_SPENT_OTHER, begin);
        train_trace_step(run);
        rc = train_rollback_step(run, err);
        end = clock_now();
        train_deadline_step(&run->leave.deadline, end - begin);
        if (rc != ERR_OK)
            break;
        train_seen_step(run, end);
        rc = step_boundary(run, err);
        if (rc == ERR_OK)
            rc = train_trace_done(run, false, err);
    }
    if (rc == ERR_OK)
        rc = train_trace_done(run, true, err);
    if (rc == ERR_OK && run->agreed.stop)
        rc = leave(run, err);
    return rc;
}

static err_code_t loop(train_state_t *run, err_t *err)
{
    err_code_t rc = steps_make(run, err);

    while (rc == ERR_DIVERGED) {
        rc = train_rollback(run, err);
        train_seen_mark(run, OBS_SPENT_LOST);
        if (rc != ERR_OK)
            break;
        rc = steps_make(run, err);
    }
    return rc;
}

/* ---- the end ------------------------------------------------------------ */

/* Evaluate the final weights, unless that is done. A run that was already
 * complete is evaluated again for its results. */
static err_code_t finish(train_state_t *run, err_t *err)
{
    if (run->last_eval.step == run->progress.step)
        return ERR_OK;
    return evaluate(run, err);
}

/* A run is complete when its results are published and all ranks know it: until
 * then a lost rank is a fault. A summary that cannot be written is an error, as
 * the summary of an earlier life would stay. */
static err_code_t complete(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_phase_set(&run->world, "shutdown");
    run->life.peak_rss = mem_peak();
    rc = comm_allreduce(run->world.group, &run->life.peak_rss, 1, COMM_FLOAT64,
                        COMM_MAX, err);
    if (rc == ERR_OK)
        rc = train_seen_sum(run, err);
    if (rc != ERR_OK)
        return rc;
    train_seen_mark(run, OBS_SPENT_OTHER);
    train_storage_begin(&run->world, "shutdown");
    rc = train_outcome_summary(run, ERR_OK, NULL, err);
    train_storage_end(&run->world);
    return train_world_vote(&run->world, rc, err);
}

/* A run that ends with an error that all ranks know still finishes the save in
 * progress, so that the next start finds it. */
static void save_finish(train_state_t *run)
{
    const bool speaker = run->world.speaker;
    err_t late = ERR_INIT;

    if (train_saver_stuck(run->saving.saver))
        return;
    if (train_save_join(run, true, &late) != ERR_OK && run->world.rank == 0)
        log_warn("train", "%s", late.text);
    run->world.speaker = speaker;
}

/* Write the summary of a failed run. If it cannot be written, a warning is
 * logged. */
static void summary_try(const train_state_t *run, err_code_t rc,
                        const err_t *why)
{
    err_t trouble = ERR_INIT;

    if (train_outcome_summary(run, rc, why, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
}

/* Install the handler of last_words, only for ranks in a network of UCX: ranks
 * that are threads of one process have none. */
static void abort_handler_install(const train_world_t *world,
                                  const train_dir_t *dir)
{
    const slurm_job_t *job = dir->env->job;

    if (job->step_id[0] == '\0' || world->group == NULL ||
        strcmp(comm_group_backend(world->group), "ucx") != 0)
        return;
    train_last_words_install(
        &(train_last_words_t){.dir = dir->path,
                              .step_id = job->step_id,
                              .restarts = job->restarts,
                              .rank = world->rank,
                              .in_transport = comm_in_transport});
}

/* Was the culprit another process of this node? */
static bool culprit_is_here(const train_world_t *world, const err_t *err)
{
    return err->culprit >= 0 && err->culprit != world->rank &&
           world->group != NULL &&
           strcmp(comm_group_backend(world->group), "ucx") == 0 &&
           strcmp(comm_group_host(world->group, err->culprit),
                  comm_group_host(world->group, world->rank)) == 0;
}

/* A complete run waits for the deletes of old checkpoints. A signal, or the end
 * of the job, ends the wait earlier. */
static void deletes_wait(const train_state_t *run)
{
    const double now = clock_now();
    const double until =
        now + train_deadline_spare(&run->leave.deadline, TRAIN_SWEEPER_WAIT,
                                   false, now);
    bool done = train_sweeper_wait(run->saving.sweeper, 0);

    while (!done && clock_now() < until &&
           run->env->signal() == SLURM_SIGNAL_NONE)
        done = train_sweeper_wait(run->saving.sweeper, DELETES_LOOK);
    if (!done)
        log_info("train",
                 "old checkpoints are not deleted yet, and the run does not "
                 "wait: cddp-ckpt prune deletes what is left of them");
}

/* Finish a run that has ended with [rc]: write its record, fill [out], and
 * close the run. After ERR_PEER a save may still be in progress. If the storage
 * of this save does not answer, out->stuck is set, and nothing is closed. */
static void run_end(train_state_t *run, err_code_t rc, train_outcome_t *out,
                    err_t *err)
{
    const slurm_job_t *job = run->env->job;

    if (rc == ERR_PEER || (rc == ERR_MEMORY && err->culprit >= 0))
        run->world.speaker = train_outcome_speaks(&run->world, rc, err);
    if (rc == ERR_PEER && run->world.speaker && run->dir.owned)
        train_last_words_add(run->config->run.dir, job->step_id, job->restarts,
                             err);
    train_outcome_record(run, rc, err);
    if (train_outcome_start_refused(&run->dir, rc))
        train_rundir_refuse(run->dir.lock);
    if (rc != ERR_OK)
        summary_try(run, rc, err);
    /* A collective on the device may wait for a dead rank, and freeing device
     * memory would wait for that collective. So the device is given up. */
    if (rc == ERR_PEER && run->world.data != NULL &&
        run->world.data != run->world.group &&
        train_world_graphs(&run->world) && run->world.size > 1)
        dev_abandon(run->compute.dev);
    train_outcome_fill(run, out);
    out->stuck = !train_saver_wait(run->saving.saver);
    if (out->stuck)
        return;
    if (rc == ERR_OK)
        deletes_wait(run);
    train_seen_close(run);
    train_leave_close(run);
    train_close(run);
}

/* Train with [run], which is initialized. If out->stuck is set, a thread still
 * uses [run], so nothing of the run was closed. */
static err_code_t run_do(train_state_t *run, train_outcome_t *out, err_t *err)
{
    err_code_t rc;

    train_seen_begin(run);
    train_leave_open(run);
    run->life.oom = train_oom_begin(run->config->run.dir, run->env->job, "");
    rc = train_open(run, err);
    run->life.opened = rc == ERR_OK;
    train_seen_mark(run, OBS_SPENT_START);
    slurm_signal_started();
    if (rc == ERR_OK)
        abort_handler_install(&run->world, &run->dir);
    if (rc == ERR_OK)
        rc = loop(run, err);
    if (rc == ERR_OK)
        rc = finish(run, err);
    if (rc == ERR_OK)
        rc = complete(run, err);
    if (rc != ERR_OK && rc != ERR_PEER)
        save_finish(run);
    /* If the storage of the run directory does not answer, omit the record and
     * the summary, as they would go there. If only the storage of
     * checkpoint.local does not answer, they are written. */
    if (train_saver_stuck(run->saving.saver)) {
        if (run->saving.local)
            train_outcome_record_in_thread(run, rc, err);
        /* After ERR_PEER another rank reports the end of the run. */
        *out =
            (train_outcome_t){.speaker = run->world.size == 1 ||
                                         (rc != ERR_PEER && run->world.speaker),
                              .stuck = true};
        return rc;
    }
    if (rc == ERR_PEER)
        train_outcome_tell_fault(run, err);
    train_nodeset_end(run, rc);
    train_seen_end(run, rc);
    if (rc == ERR_PEER && culprit_is_here(&run->world, err))
        rc = train_oom_look(&run->life.oom, err);
    run_end(run, rc, out, err);
    return rc;
}

err_code_t train_run(const train_config_t *config, const train_env_t *env,
                     boot_t *boot, train_outcome_t *out, err_t *err)
{
    train_state_t *run = NULL;
    err_code_t rc;

    if (env->predict != NULL)
        return train_predict(config, env, boot, out, err);
    rc = mem_new(train_state_t, 1, "a run", &run, err);
    if (rc != ERR_OK) {
        boot_close(boot);
        return rc;
    }
    train_state_init(run, config, env, boot);
    *out = (train_outcome_t){.speaker = false};
    rc = run_do(run, out, err);
    if (!out->stuck)
        mem_free(run);
    return rc;
}
