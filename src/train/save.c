/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/save.h"

#include "base/clock.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/leave.h"
#include "train/record.h"
#include "train/seen.h"
#include "train/sound.h"

/* Rank 0 must still have the run directory, and all tensors, which are pulled
 * from the device, must be finite. */
static err_code_t keep_check(train_state_t *run, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (run->dir.lock != NULL)
        rc = train_rundir_check(run->dir.lock, err);
    if (rc != ERR_OK)
        run->dir.owned = false;
    else
        rc = train_mirror_pull(run->replica.mirror, err);
    rc = train_world_vote(&run->world, rc, err);
    return rc == ERR_OK
               ? train_sound(run->world.group, &run->replica.kept,
                             run->progress.step, run->dir.saved_step, err)
               : rc;
}

/* Complete the progress that a checkpoint keeps. */
static void progress_complete(train_state_t *run)
{
    run->progress.data_samples =
        hdf5io_dataset_samples(run->data.train.dataset);
    run->progress.order =
        hdf5io_sampler_order(run->data.train.sampler, run->progress.epoch);
}

static err_code_t state_write(train_state_t *run, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    train_checkpoint_config_t config;
    train_saved_t saved = train_saved_of(run);
    const double begin = clock_now();
    char size[32];
    err_code_t rc;

    train_record_saving(run);
    train_checkpoint_config_fill(run, &config);
    progress_complete(run);
    rc = hdf5io_checkpoint_write(&config.checkpoint, &run->progress,
                                 run->replica.kept.tensors,
                                 run->replica.kept.count, &info, err);
    train_checkpoint_config_free(&config);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (rc != ERR_OK)
        return rc;
    saved.seconds = clock_now() - begin;
    train_seen_mark(run, OBS_SPENT_SAVE);
    train_saved_add(run, &saved, &run->seen.spent);
    train_saved_note(run, &saved);
    if (run->world.rank == 0)
        log_debug("train", "checkpoint %s in %.2f s (%s by this rank)",
                  info.path, saved.seconds,
                  str_bytes((uint64_t)info.bytes_written, size, sizeof size));
    return ERR_OK;
}

err_code_t train_save(train_state_t *run, err_t *err)
{
    const double begin = clock_now();
    err_code_t rc;

    train_seen_mark(run, OBS_SPENT_OTHER);
    train_storage_begin(&run->world, "checkpoint");
    rc = keep_check(run, err);
    if (rc == ERR_OK)
        rc = state_write(run, err);
    train_storage_end(&run->world);
    train_seen_mark(run, OBS_SPENT_SAVE);
    if (rc == ERR_OK)
        train_leave_saved(run, clock_now() - begin);
    return rc;
}
