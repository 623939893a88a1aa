/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/save.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/best.h"
#include "train/checkpoint.h"
#include "train/leave.h"
#include "train/nodeset.h"
#include "train/record.h"
#include "train/save_failed.h"
#include "train/seen.h"
#include "train/sound.h"
#include "train/sweeper.h"

/* A save waits for space at most for this part of the shorter timeout. */
#define ROOM_SHARE 0.25

/* ---- in the training's thread -------------------------------------------- */

/* Rank 0 must still have the run directory, and all tensors, which are pulled
 * from the device, must be finite. */
static err_code_t keep_check(train_state_t *run, err_t *err)
{
    hdf5io_share_t *share = run->replica.kept.share;
    err_code_t rc = ERR_OK;

    if (run->dir.lock != NULL)
        rc = train_rundir_check(run->dir.lock, err);
    if (rc != ERR_OK)
        run->dir.owned = false;
    else
        rc = train_mirror_pull_share(run->replica.mirror, share, err);
    rc = train_world_vote(&run->world, rc, err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_share_copy(share, 0, hdf5io_share_elems(share));
    return train_sound(run->world.group, &run->replica.kept, run->progress.step,
                       run->dir.checkpoint_step, err);
}

/* Complete the progress that a checkpoint keeps. */
static void progress_complete(train_state_t *run)
{
    run->progress.data_samples =
        hdf5io_dataset_samples(run->data.train.dataset);
    run->progress.order =
        hdf5io_sampler_order(run->data.train.sampler, run->progress.epoch);
}

static err_code_t state_write(train_state_t *run, bool last, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    train_checkpoint_config_t config;
    train_saved_t saved = train_saved_of(run);
    const double begin = clock_now();
    char size[32];
    err_code_t rc;

    train_best_saving(run);
    train_record_saving(run);
    train_checkpoint_config_fill(run, &config);
    progress_complete(run);
    rc = hdf5io_checkpoint_write(&config.checkpoint, &run->progress,
                                 run->replica.kept.tensors,
                                 run->replica.kept.count, &info, err);
    train_checkpoint_config_free(&config);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (rc == ERR_IO)
        return train_save_failed(
            run, &saved, last ? TRAIN_AFTER_END : TRAIN_AFTER_STEPS, err);
    if (rc != ERR_OK)
        return rc;
    saved.seconds = saved.exposed = clock_now() - begin;
    train_seen_mark(run, OBS_SPENT_SAVE);
    train_saved_add(run, &saved, &run->seen.spent);
    train_saved_note(run, &saved);
    if (run->world.rank == 0)
        log_debug("train", "checkpoint %s in %.2f s (%s by this rank)",
                  info.path, saved.seconds,
                  str_bytes((uint64_t)info.bytes_written, size, sizeof size));
    return ERR_OK;
}

/* ---- in the thread ------------------------------------------------------- */

/* Rank 0 must still have the run directory. Called by the saver's thread. */
static err_code_t directory_check(void *context, err_t *err)
{
    train_state_t *run = context;
    err_code_t rc = ERR_OK;

    if (run->dir.lock != NULL)
        rc = train_rundir_check(run->dir.lock, err);
    run->saving.lost = rc != ERR_OK;
    return rc;
}

/* Called by the saver's thread, so that the history has the checkpoint as soon
 * as it is there. */
static void published(void *context, double seconds)
{
    const train_state_t *run = context;
    train_saved_t saved = run->saving.saved;
    obs_spent_t spent = run->saving.spent;

    saved.seconds = seconds;
    if (!run->saving.behind) { /* training has waited since the start */
        obs_spent_mark(&spent, OBS_SPENT_SAVE, clock_now());
        spent.wall = clock_wall();
    }
    train_saved_add(run, &saved, &spent);
}

/* The storage of this rank does not answer, and the other ranks have given up
 * this rank. Say why this rank still waits. */
static void alone_say(void *context, double seconds)
{
    const train_state_t *run = context;

    log_error("train",
              "%s has not answered this rank for %.0f s, in the checkpoint of "
              "step %lld, and the other ranks end: this rank waits a little "
              "longer, and then ends, too",
              run->saving.local ? "the storage of checkpoint.local" : "storage",
              seconds, (long long)run->saving.saved.step);
}

/* Training waits for a save, which may take longer than fault.io_timeout. Other
 * ranks may already wait for this one in their next step: report progress. */
static void waits(void *context)
{
    train_state_t *run = context;

    train_phase_set(&run->world, run->world.phase);
}

/* [local]: it is a local checkpoint, which needs no run directory. */
static void saving_begin(train_state_t *run, bool local)
{
    train_saving_t *saving = &run->saving;
    train_save_t save = {.config = &saving->config->checkpoint,
                         .saved_step = run->dir.checkpoint_step,
                         .context = run,
                         .allowed = local ? NULL : directory_check,
                         .published = published,
                         .alone = alone_say,
                         .waits = waits,
                         .write = local ? train_nodeset_write : NULL};

    if (!local)
        train_best_saving(run);
    train_record_saving(run);
    train_checkpoint_config_fill(run, saving->config);
    progress_complete(run);
    save.progress = run->progress;
    train_seen_mark(run, OBS_SPENT_SAVE);
    saving->saved = train_saved_of(run);
    saving->newest = run->newest;
    saving->spent = run->seen.spent;
    saving->lost = false;
    saving->local = local;
    train_saver_start(saving->saver, &save);
}

/* Wait for the save in progress, and learn its outcome. */
static err_code_t saving_end(train_state_t *run, train_after_t after,
                             err_t *err)
{
    train_saving_t *saving = &run->saving;
    const double begin = clock_now();
    double seconds;
    err_code_t rc;

    run->agreed.ended = false;
    if (!train_saver_busy(saving->saver))
        return ERR_OK;
    rc = train_saver_join(saving->saver, &seconds, err);
    if (train_saver_stuck(saving->saver)) {
        /* The end of the run is reported by another rank, which does not know
         * this error. */
        if (run->world.size > 1)
            log_error("train", "%s", err->text);
        return rc;
    }
    /* This rank writes more, and fault.io_timeout counts from here on. */
    train_storage_begin(&run->world, run->world.phase);
    train_checkpoint_config_free(saving->config);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (saving->lost)
        run->dir.owned = false;
    if (rc == ERR_DIVERGED)
        run->newest = saving->newest;
    if (saving->local) {
        train_deadline_local(&run->leave.deadline, seconds);
        return train_nodeset_saved(run, saving->saved.step, rc, err);
    }
    if (rc == ERR_IO && train_saver_allowed(saving->saver))
        return train_save_failed(run, &saving->saved, after, err);
    if (rc != ERR_OK)
        return rc;
    saving->saved.seconds = seconds;
    saving->saved.exposed = saving->exposed + clock_now() - begin;
    train_saved_note(run, &saving->saved);
    train_leave_saved(run, seconds);
    return ERR_OK;
}

/* Get what is saved from the device: then steps may change it there. */
static err_code_t device_pull(train_state_t *run, err_t *err)
{
    err_code_t rc;

    if (dev_host_visible(run->compute.dev))
        return ERR_OK;
    rc = train_mirror_pull_share(run->replica.mirror, run->replica.kept.share,
                                 err);
    return train_world_vote(&run->world, rc, err);
}

/* Get the numbers from the device, and let the thread write a checkpoint.
 * [local]: it is a local checkpoint. */
static err_code_t saving_start(train_state_t *run, bool local, err_t *err)
{
    const double begin = clock_now();
    const err_code_t rc = device_pull(run, err);

    if (rc != ERR_OK)
        return rc;
    run->saving.began = begin;
    saving_begin(run, local);
    run->saving.exposed = clock_now() - begin;
    return ERR_OK;
}

/* Rank 0 says once that checkpoints are too slow for how often they are due. */
static void wait_say(train_state_t *run, double seconds)
{
    if (run->saving.waits++ > 0 || run->world.rank != 0)
        return;
    log_warn("train",
             "a checkpoint was due before the one before was written, and "
             "waited %.1f s for it: a longer checkpoint.every, or a faster "
             "file system, would mend that",
             seconds);
}

err_code_t train_save_begin(train_state_t *run, err_t *err)
{
    const bool waits = train_saver_busy(run->saving.saver) &&
                       !train_saver_ended(run->saving.saver) &&
                       !run->saving.local;
    const double begin = clock_now();
    err_code_t rc;

    train_seen_mark(run, OBS_SPENT_OTHER);
    train_storage_begin(&run->world, "checkpoint");
    rc = saving_end(run, TRAIN_AFTER_BEGIN, err);
    if (waits && rc == ERR_OK)
        wait_say(run, clock_now() - begin);
    train_save_tried(run);
    if (rc == ERR_OK)
        rc = saving_start(run, false, err);
    train_storage_end(&run->world);
    train_seen_mark(run, OBS_SPENT_SAVE);
    return rc;
}

err_code_t train_save_nodes(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_seen_mark(run, OBS_SPENT_OTHER);
    rc = saving_start(run, true, err);
    train_seen_mark(run, OBS_SPENT_SAVE);
    return rc;
}

err_code_t train_save_join(train_state_t *run, bool last, err_t *err)
{
    err_code_t rc;

    if (!train_saver_busy(run->saving.saver))
        return ERR_OK;
    train_seen_mark(run, OBS_SPENT_OTHER);
    train_storage_begin(&run->world, "checkpoint");
    rc = saving_end(run, last ? TRAIN_AFTER_END : TRAIN_AFTER_STEPS, err);
    train_storage_end(&run->world);
    train_seen_mark(run, OBS_SPENT_SAVE);
    return rc;
}

/* May training go on during a save? With a device the saver reads the mirror,
 * which steps do not change. But a comm hook that works on the host's memory
 * has its state there, and the next step changes this state. */
static bool behind_training(const train_state_t *run)
{
    const bool changes =
        ddp_hook_away(run->replica.ddp) && run->replica.kept.hook_count > 0;

    if (!train_config_async(run->config))
        return false;
    if (changes && run->world.rank == 0)
        log_info("train", "training waits for each checkpoint, as the state of "
                          "the comm hook is in the memory of the host");
    return !changes;
}

/* Rank 0 deletes old checkpoints behind training, too. */
static err_code_t sweeper_open(train_state_t *run, err_t *err)
{
    char *directory = str_printf("%s/checkpoints", run->config->run.dir);
    err_code_t rc = ERR_OK;

    if (run->world.rank == 0)
        rc = train_sweeper_open(directory, &run->saving.sweeper, err);
    free(directory);
    return rc;
}

err_code_t train_save_open(train_state_t *run, err_t *err)
{
    const bool behind = behind_training(run);
    const train_saver_plan_t plan = {
        .parent = run->world.group,
        .io_timeout = run->config->fault.io_timeout,
        .kept = &run->replica.kept,
        .behind = behind,
        .copies = behind && dev_host_visible(run->compute.dev)};
    err_code_t rc;

    rc = train_best_check(run, err);
    /* MPI may be called from one thread only. */
    if (rc != ERR_OK || run->config->checkpoint.io == TRAIN_IO_MPI)
        return rc;
    run->saving.behind = behind;
    rc = train_saver_open(&plan, &run->saving.saver, err);
    if (rc == ERR_OK)
        rc = mem_new(train_checkpoint_config_t, 1, "checkpoints",
                     &run->saving.config, err);
    if (rc == ERR_OK && behind)
        rc = sweeper_open(run, err);
    rc = train_world_vote(&run->world, rc, err);
    return rc == ERR_OK && behind ? train_nodeset_open(run, err) : rc;
}

void train_save_close(train_state_t *run)
{
    train_saving_t *saving = &run->saving;
    const bool busy = train_saver_busy(saving->saver);

    train_saver_close(saving->saver);
    saving->saver = NULL;
    train_sweeper_close(saving->sweeper);
    saving->sweeper = NULL;
    train_nodeset_close(run);
    if (busy)
        train_checkpoint_config_free(saving->config);
    mem_free(saving->config);
    saving->config = NULL;
}

/* ---- a save that is waited for ------------------------------------------- */

/* The last save of a start has no second try, and it may need the space of
 * checkpoints that are not deleted yet. So wait for the deletes. Other ranks
 * wait for rank 0 meanwhile, so the wait is short against the timeouts. */
static void room_wait(const train_state_t *run)
{
    const train_config_t *config = run->config;
    const double limit = fmin(config->fault.timeout, config->fault.io_timeout);
    const double most = fmin(TRAIN_SWEEPER_ROOM, ROOM_SHARE * limit);
    const double now = clock_now();
    train_deadline_t deadline = run->leave.deadline;

    if (run->agreed.stop && run->env->signal() == SLURM_SIGNAL_TERM)
        deadline = train_deadline_after_term(&deadline, now);
    train_sweeper_wait(run->saving.sweeper,
                       train_deadline_spare(&deadline, most, true, now));
}

/* Let the thread write a checkpoint, and wait for its end. If storage never
 * answers, train_saver_join ends the wait. */
static err_code_t thread_write(train_state_t *run, bool last, err_t *err)
{
    const err_code_t rc = saving_start(run, false, err);

    return rc == ERR_OK
               ? saving_end(run, last ? TRAIN_AFTER_END : TRAIN_AFTER_STEPS,
                            err)
               : rc;
}

/* Write a checkpoint in this thread. */
static err_code_t own_write(train_state_t *run, bool last, err_t *err)
{
    const double begin = clock_now();
    err_code_t rc = keep_check(run, err);

    if (rc == ERR_OK)
        rc = state_write(run, last, err);
    if (rc == ERR_OK && run->dir.checkpoint_step == run->progress.step)
        train_leave_saved(run, clock_now() - begin);
    return rc;
}

err_code_t train_save(train_state_t *run, bool last, err_t *err)
{
    err_code_t rc;

    check(last || !run->saving.behind,
          "the checkpoint of step %lld is waited for",
          (long long)run->progress.step);
    train_seen_mark(run, OBS_SPENT_OTHER);
    train_storage_begin(&run->world, "checkpoint");
    rc = saving_end(run, last ? TRAIN_AFTER_SAVE : TRAIN_AFTER_BEGIN, err);
    if (rc == ERR_OK && last)
        room_wait(run);
    train_save_tried(run);
    if (rc == ERR_OK)
        rc = run->saving.saver != NULL ? thread_write(run, last, err)
                                       : own_write(run, last, err);
    train_storage_end(&run->world);
    train_seen_mark(run, OBS_SPENT_SAVE);
    return rc;
}
