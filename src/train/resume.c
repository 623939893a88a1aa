/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Resumes a run from a checkpoint. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "base/str.h"
#include "train/checkpoint.h"
#include "train/nodeset.h"
#include "train/open.h"
#include "train/order.h"
#include "train/resumed.h"

typedef err_code_t resumed_check_t(const train_resumed_t *resumed,
                                   const char *path, err_t *err);

/* The rank [teller] checks the checkpoint at [path]; all ranks get the outcome.
 * Collective. */
static err_code_t teller_check(const train_world_t *world, int teller,
                               const train_resumed_t *resumed,
                               resumed_check_t *look, const char *path,
                               err_t *err)
{
    err_t said = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (world->rank == teller)
        look(resumed, path, &said);
    rc = train_tell(&world->votes, teller, &said, sizeof said, err);
    if (rc != ERR_OK || said.code == ERR_OK)
        return rc;
    return err_copy(err, &said);
}

/* Log the checkpoint, epoch and step from which the run resumes. */
static void start_log(const hdf5io_checkpoint_info_t *info, int64_t epochs)
{
    char place[64];

    if (info->progress.epoch < epochs)
        snprintf(place, sizeof place, "epoch %lld",
                 (long long)info->progress.epoch + 1);
    else
        snprintf(place, sizeof place, "%lld epochs done",
                 (long long)info->progress.epoch);
    log_info("train", "resumed from %s (step %lld, %s, written by %d ranks)",
             info->path, (long long)info->progress.step, place,
             info->world_size);
}

/* Set the place in the epoch from which the run resumes: after the samples that
 * the epoch has consumed, with whatever batch size. If the batch size of this
 * run does not divide this number of samples, the run cannot resume exactly. */
static err_code_t place_in_epoch(const train_data_t *train, int64_t batch,
                                 hdf5io_progress_t *progress, err_t *err)
{
    const int64_t total = hdf5io_dataset_samples(train->dataset);

    if (progress->samples > total)
        return err_set(err, ERR_DATA,
                       "the checkpoint has consumed %lld samples of its epoch, "
                       "but data.train holds only %lld: the data changed; "
                       "restore it or start with --fresh",
                       (long long)progress->samples, (long long)total);
    if (progress->samples == total)
        progress->epoch_step = train->steps;
    else if (progress->samples % batch == 0)
        progress->epoch_step = progress->samples / batch;
    else
        return err_set(err, ERR_CONFIG,
                       "the checkpoint is at sample %lld of its epoch, "
                       "which train.batch %lld does not divide: resume with "
                       "the old batch, or start with --fresh",
                       (long long)progress->samples, (long long)batch);
    check(progress->epoch_step <= train->steps, "step %lld of %lld",
          (long long)progress->epoch_step, (long long)train->steps);
    return ERR_OK;
}

/* Read the newest checkpoint, or, if this is the [first] read of a job, the
 * checkpoint of --resume PATH. Later reads take that checkpoint, too, until the
 * run has written its own first one. */
static err_code_t state_read(train_state_t *run, bool first, bool *found,
                             hdf5io_checkpoint_info_t *info, err_t *err)
{
    const train_env_t *env = run->env;
    const char *path =
        env->resume == TRAIN_RESUME_PATH ? env->resume_path : NULL;
    const train_replica_t *replica = &run->replica;
    train_checkpoint_config_t config;
    train_kept_source_t source;
    err_code_t rc;

    train_checkpoint_config_fill(run, &config);
    source = (train_kept_source_t){.config = &config.checkpoint,
                                   .path = first ? path : NULL};
    rc = train_kept_read(&replica->kept, &source, found, info, err);
    source.path = path;
    if (rc == ERR_OK && !*found && path != NULL)
        rc = train_kept_read(&replica->kept, &source, found, info, err);
    train_checkpoint_config_free(&config);
    return rc;
}

/* Compare the run with the checkpoint at [path]. The order matters: the check
 * of the settings uses the place in the epoch. Collective. */
static err_code_t resumed_check(train_state_t *run, const char *path,
                                err_t *err)
{
    const train_data_t *train = &run->data.train;
    const int teller = train_nodeset_teller(run);
    const train_resumed_t resumed = {.config = run->config,
                                     .progress = &run->progress,
                                     .samples =
                                         hdf5io_dataset_samples(train->dataset),
                                     .epoch_steps = train->steps,
                                     .marks = run->data.marks,
                                     .mark_count = run->data.mark_count,
                                     .logs = run->world.rank == teller};
    const hdf5io_order_t order =
        hdf5io_sampler_order(train->sampler, run->progress.epoch);
    err_code_t rc = train_resumed_data(&resumed, err);

    if (rc == ERR_OK)
        rc = train_order_check(&resumed, &order, err);
    if (rc == ERR_OK)
        rc = teller_check(&run->world, teller, &resumed, train_resumed_marks,
                          path, err);
    if (rc == ERR_OK)
        rc = place_in_epoch(train, run->config->train.batch, &run->progress,
                            err);
    if (rc == ERR_OK)
        rc = teller_check(&run->world, teller, &resumed, train_resumed_settings,
                          path, err);
    return rc;
}

/* The tensors are those of the checkpoint [info]: go on from its place, if it
 * fits this run. Collective. */
static err_code_t resume_from(train_state_t *run,
                              const hdf5io_checkpoint_info_t *info, err_t *err)
{
    err_code_t rc;

    run->dir.resumed = str_dup(info->path);
    run->progress = info->progress;
    run->dir.saved_step = info->progress.step;
    run->dir.checkpoint_step = train_nodeset_below(run, info->progress.step);
    rc = ddp_step_set(run->replica.ddp, info->progress.step, err);
    if (run->world.rank == 0)
        start_log(info, run->config->train.epochs);
    train_plateau_resumed(&run->plateau);
    return rc == ERR_OK ? resumed_check(run, info->path, err) : rc;
}

/* The local checkpoint [info], whose tensors are read, does not fit this run
 * because of [why]. Read an older checkpoint of the run directory. If none is
 * whole, return [why]: the local one is all that the run has. Collective. */
static err_code_t older_read(train_state_t *run, const err_t *why,
                             hdf5io_checkpoint_info_t *info, err_t *err)
{
    const int64_t step = info->progress.step;
    bool found = false;
    err_code_t rc = state_read(run, false, &found, info, err);
    const bool none = rc == ERR_DATA && info->none_whole;

    if (none || (rc == ERR_OK && !found))
        return err_copy(err, why);
    if (rc != ERR_OK)
        return rc;
    if (run->world.rank == 0)
        log_warn("train", "the local checkpoint of step %lld is not used: %s",
                 (long long)step, why->text);
    train_nodeset_drop(run);
    free(run->dir.resumed);
    return resume_from(run, info, err);
}

/* Resume from the local checkpoint [info], whose tensors are read. Collective.
 */
static err_code_t local_from(train_state_t *run, hdf5io_checkpoint_info_t *info,
                             err_t *err)
{
    err_t why = ERR_INIT;
    const err_code_t rc = resume_from(run, info, &why);

    if (rc == ERR_CONFIG || rc == ERR_DATA)
        return older_read(run, &why, info, err);
    return rc == ERR_OK ? ERR_OK : err_copy(err, &why);
}

/* Resume from the newest whole local checkpoint, if no checkpoint of the run
 * directory has a later step. Collective. */
static err_code_t local_resume(train_state_t *run, bool *found, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    const err_code_t rc = train_nodeset_restore(run, found, &info, err);

    return rc == ERR_OK && *found ? local_from(run, &info, err) : rc;
}

/* [step] is that of the newest whole checkpoint of the run directory; -1: none
 * is whole. If a damaged one has a later step, a local checkpoint may be newer
 * than [step]: then resume from the local one. Collective. */
static err_code_t hidden_resume(train_state_t *run, int64_t step, bool *found,
                                err_t *err)
{
    hdf5io_checkpoint_info_t info;
    err_code_t rc;

    *found = false;
    if (!train_nodeset_hidden(run, step))
        return ERR_OK;
    rc = train_nodeset_restore_hidden(run, step, found, &info, err);
    return rc == ERR_OK && *found ? local_from(run, &info, err) : rc;
}

/* [named]: resume from the checkpoint that the command line names. Otherwise
 * resume from the newest whole one of the run directory and of the nodes.
 * Collective. */
static err_code_t newest_resume(train_state_t *run, bool named, bool *found,
                                err_t *err)
{
    hdf5io_checkpoint_info_t info = {0};
    err_t why = ERR_INIT;
    bool local = false, shared = false;
    err_code_t rc = named ? ERR_OK : local_resume(run, &local, err);

    if (rc != ERR_OK || local) {
        *found = local;
        return rc;
    }
    rc = state_read(run, run->dir.first, &shared, &info, &why);
    if (!named && rc == ERR_OK && shared)
        rc = hidden_resume(run, info.progress.step, &local, &why);
    else if (!named && rc == ERR_DATA && info.none_whole) {
        const err_code_t other = hidden_resume(run, -1, &local, err);

        if (other != ERR_OK)
            return other;
        rc = local ? ERR_OK : rc;
    }
    *found = local || shared;
    if (rc == ERR_OK && shared && !local)
        rc = resume_from(run, &info, &why);
    return rc == ERR_OK ? ERR_OK : err_copy(err, &why);
}

err_code_t train_restore(train_state_t *run, err_t *err)
{
    const train_resume_t how = run->env->resume;
    bool fresh = how == TRAIN_RESUME_NEVER || how == TRAIN_RESUME_FRESH;
    bool found = false;
    err_code_t rc;

    rc = train_begin(&run->dir, &run->world, err);
    if (rc != ERR_OK || (fresh && run->dir.first))
        return rc;
    rc = newest_resume(run, how == TRAIN_RESUME_PATH && run->dir.first, &found,
                       err);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (found)
        run->progress.seed = (uint64_t)run->config->run.seed;
    return rc;
}

err_code_t train_restore_weights(train_state_t *run, bool *found, err_t *err)
{
    const train_resume_t how = run->env->resume;
    hdf5io_checkpoint_info_t info;
    err_code_t rc;

    *found = false;
    if (how == TRAIN_RESUME_NEVER || how == TRAIN_RESUME_FRESH)
        return ERR_OK;
    rc = state_read(run, true, found, &info, err);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (rc != ERR_OK || !*found)
        return rc;
    run->progress = info.progress;
    if (run->world.rank == 0)
        log_info("train", "weights of %s (step %lld)", info.path,
                 (long long)info.progress.step);
    return ERR_OK;
}

err_code_t train_restore_again(train_state_t *run, err_t *err)
{
    const uint64_t seed = run->progress.seed;
    hdf5io_checkpoint_info_t info;
    bool found = false;
    err_code_t rc = state_read(run, false, &found, &info, err);

    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (rc == ERR_OK && !found)
        rc = err_set(err, ERR_DATA,
                     "%s/checkpoints has no checkpoint to which the run can go "
                     "back: somebody has removed that of step %lld",
                     run->dir.path, (long long)run->dir.checkpoint_step);
    if (rc != ERR_OK)
        return rc;
    run->progress = info.progress;
    run->progress.seed = seed;
    run->dir.saved_step = run->dir.checkpoint_step = info.progress.step;
    rc = ddp_step_set(run->replica.ddp, info.progress.step, err);
    return rc == ERR_OK
               ? place_in_epoch(&run->data.train, run->config->train.batch,
                                &run->progress, err)
               : rc;
}
