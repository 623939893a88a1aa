/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/rollback.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "train/best.h"
#include "train/lives.h"
#include "train/nodeset.h"
#include "train/record.h"
#include "train/save.h"

/* ---- leaving out a step -------------------------------------------------- */

static bool left_out(const hdf5io_progress_t *progress, int64_t epoch,
                     int64_t first, int64_t count)
{
    for (int64_t i = 0; i < progress->skip_count; i++) {
        const hdf5io_skip_t *skip = &progress->skips[i];

        if (skip->epoch == epoch && first < skip->first + skip->count &&
            skip->first < first + count)
            return true;
    }
    return false;
}

/* Wait for the copy of the batch to the device: the loader reuses its memory.
 */
static err_code_t batch_drop(train_state_t *run, err_t *err)
{
    dev_stream_t *stream = train_replica_stream(&run->replica);
    err_code_t rc;

    if (dev_host_visible(run->compute.dev) || run->turn.rc != ERR_OK)
        return ERR_OK;
    rc = train_feed_take(run->data.train.feed, stream, &run->there, err);
    return rc == ERR_OK ? dev_stream_wait(stream, err) : rc;
}

/* Pass over the next step, which has [count] samples. The batch is read, since
 * the loader delivers all batches in order. */
static err_code_t step_pass(train_state_t *run, int64_t count, err_t *err)
{
    hdf5io_progress_t *progress = &run->progress;
    err_code_t rc = ERR_OK;

    if (!run->turn.loaded)
        rc = train_turn_load(run, progress->epoch_step, err);
    if (rc != ERR_OK)
        return rc;
    rc = batch_drop(run, err);
    run->turn.loaded = false;
    if (!dev_host_visible(run->compute.dev))
        rc = train_world_vote(&run->world, rc, err);
    if (rc != ERR_OK)
        return rc;
    progress->step++;
    progress->epoch_step++;
    progress->samples += count;
    run->agreed.checkpoint = false;
    return ddp_step_set(run->replica.ddp, progress->step, err);
}

err_code_t train_rollback_step(train_state_t *run, err_t *err)
{
    const hdf5io_progress_t *progress = &run->progress;
    const int64_t count =
        hdf5io_sampler_share(run->data.train.sampler, progress->epoch_step)
            .global;

    run->newest = (hdf5io_skip_t){progress->epoch, progress->samples, count};
    return left_out(progress, progress->epoch, progress->samples, count)
               ? step_pass(run, count, err)
               : train_step(run, err);
}

/* ---- going back ---------------------------------------------------------- */

/* May the run go back? If a checkpoint is missing or all rollbacks are used,
 * this is added to [err]. */
static bool may_go_back(const train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;

    if (config->fault.diverge != TRAIN_DIVERGE_ROLLBACK || err->culprit >= 0 ||
        run->newest.count == 0)
        return false;
    if (run->dir.checkpoint_step < 0) {
        err_suffix(err, "so there is none to go back to: checkpoint.every is "
                        "to be shorter");
        return false;
    }
    if (run->progress.skip_count < config->fault.rollbacks)
        return true;
    err_suffix(err,
               "the run has gone back %lld times already, and "
               "fault.rollbacks is %lld",
               (long long)run->progress.skip_count,
               (long long)config->fault.rollbacks);
    return false;
}

/* When the checkpoint has been read, rank 0 logs the rollback with the number
 * [number], and adds it to the history of the run. The text of [why] after the
 * colon is left out: it is advice for the case that the run ends. */
static void rollback_note(const train_state_t *run, int64_t number,
                          const err_t *why)
{
    const hdf5io_skip_t *skip = &run->newest;
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_ROLLBACK, run->dir.checkpoint_step);
    char *text;

    if (run->world.rank != 0)
        return;
    text = str_printf(
        "%.*s: back to the checkpoint of step %lld, and without "
        "samples %lld to %lld of epoch %lld (rollback %lld of "
        "%lld)",
        (int)strcspn(why->text, ":"), why->text,
        (long long)run->dir.checkpoint_step, (long long)skip->first + 1,
        (long long)(skip->first + skip->count), (long long)skip->epoch + 1,
        (long long)number, (long long)run->config->fault.rollbacks);
    log_warn("train", "%s", text);
    line.detail = text;
    train_lives_add(run, &line);
    free(text);
}

/* What each rank does alone once the checkpoint is read. Graphs are dropped,
 * since they contain the addresses of the old feed. */
static err_code_t begin_again(train_state_t *run, err_t *err)
{
    const bool off = run->replay.off;
    err_code_t rc = train_mirror_push(run->replica.mirror, err);

    train_replay_close(&run->replay);
    run->replay.off = off;
    if (rc == ERR_OK)
        rc = train_loader_restart(run, err);
    return rc == ERR_OK ? train_record_back(run, err) : rc;
}

/* Go back because of [why]. A damaged checkpoint is found only by reading it.
 * So rank 0 logs the rollback after a checkpoint has been read. If no
 * checkpoint can be read, rank 0 logs [why]. */
static err_code_t go_back(train_state_t *run, int64_t number, const err_t *why,
                          err_t *err)
{
    err_code_t rc = train_restore_again(run, err);

    if (rc == ERR_OK)
        rollback_note(run, number, why);
    else if (run->world.rank == 0)
        log_warn("train", "%s", why->text);
    if (rc != ERR_OK)
        return rc;
    run->turn.loaded = false;
    run->agreed = (train_agreed_t){0};
    if (run->last_eval.step > run->progress.step)
        run->last_eval.step = -1;
    train_best_back(run);
    rc = begin_again(run, err);
    rc = train_world_vote(&run->world, rc, err);
    return rc == ERR_OK ? train_nodeset_back(run, err) : rc;
}

/* End the save in progress. If it has found that training diverged in its step,
 * that is the reason of [err], too. */
static err_code_t save_end(train_state_t *run, err_t *err)
{
    err_t found = ERR_INIT;
    err_code_t rc = train_save_join(run, false, &found);

    if (rc == ERR_OK || (rc == ERR_DIVERGED && err->culprit >= 0))
        return ERR_OK;
    err_copy(err, &found);
    return rc == ERR_DIVERGED ? ERR_OK : rc;
}

err_code_t train_rollback(train_state_t *run, err_t *err)
{
    hdf5io_progress_t *progress = &run->progress;
    hdf5io_skip_t skips[HDF5IO_SKIPS_MAX];
    const int64_t count = progress->skip_count;
    err_t why;
    err_code_t rc;

    rc = save_end(run, err);
    if (rc != ERR_OK)
        return rc;
    if (!may_go_back(run, err))
        return ERR_DIVERGED;
    train_storage_begin(&run->world, "rollback");
    memcpy(skips, progress->skips, sizeof skips);
    skips[count] = run->newest;
    why = *err;
    *err = (err_t)ERR_INIT;
    rc = go_back(run, count + 1, &why, err);
    train_storage_end(&run->world);
    memcpy(progress->skips, skips, sizeof skips);
    progress->skip_count = count + 1;
    run->newest.count = 0;
    return rc;
}
