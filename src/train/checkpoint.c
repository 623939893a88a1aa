/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Saving. The state of a run is the replica's tensors and the counters of its
 * progress. Random numbers are keyed by these counters, so tensors and counters
 * are enough to resume with the same bits.
 */
#include "train/checkpoint.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/retry.h"
#include "train/finite.h"
#include "train/inputs.h"
#include "train/leave.h"
#include "train/lives.h"
#include "train/record.h"
#include "train/seen.h"

static err_code_t state_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    const train_votes_t *votes = &((train_world_t *)context)->votes;

    return votes->exchange(votes->context, mine, bytes, all, err);
}

/* Called while bytes are written or read: report progress. The next access may
 * be slow, too. */
static void state_alive(void *context)
{
    train_world_t *world = context;

    train_storage_begin(world, world->phase);
}

void train_checkpoint_config_fill(train_state_t *run,
                                  train_checkpoint_config_t *out)
{
    const train_config_t *config = run->config;

    *out = (train_checkpoint_config_t){.votes = {.context = &run->world,
                                                 .rank = run->world.rank,
                                                 .size = run->world.size,
                                                 .exchange = state_exchange,
                                                 .alive = state_alive}};
    out->directory = str_printf("%s/checkpoints", config->run.dir);
    opt_print(train_options, config, 0, &out->text);
    out->checkpoint = (hdf5io_checkpoint_config_t){
        .directory = out->directory,
        .votes = &out->votes,
        .mpi = config->checkpoint.io == TRAIN_IO_MPI ? run->world.mpi : NULL,
        .keep = (int)config->checkpoint.keep,
        .config_hash = train_config_hash(config),
        .model_hash = nn_graph_hash(run->graph),
        .build_hash = run->env->build_hash,
        .config_text = out->text.text,
        .marks = run->data.marks,
        .mark_count = run->data.mark_count,
        .versions = run->compute.versions != NULL ? run->compute.versions
                                                  : run->env->versions,
        .retry_seconds = RETRY_SHARE * config->fault.io_timeout};
}

void train_checkpoint_config_free(train_checkpoint_config_t *config)
{
    str_buf_free(&config->text);
    free(config->directory);
}

/* ---- may it be saved? ---------------------------------------------------- */

/* Check this rank's part of [tensor] for values that are not finite. Ranks
 * divide a tensor that all of them have; of a sharded tensor, each rank checks
 * its own parts. */
static bool tensor_finite(const train_world_t *world,
                          const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1, first, end;
    bool finite = true;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    first = elems * world->rank / world->size;
    end = elems * (world->rank + 1) / world->size;
    if (tensor->parts == NULL)
        return train_all_finite(tensor->data + first, end - first);
    for (int p = 0; p < tensor->part_count && finite; p++)
        if (tensor->parts[p].rank == world->rank)
            finite =
                train_all_finite(tensor->parts[p].data, tensor->parts[p].count);
    return finite;
}

/* Check all tensors before they are saved, as the last update may have spoiled
 * weights that no loss has shown yet. The error names the first tensor that is
 * not finite on some rank. */
static err_code_t state_check(train_state_t *run, err_t *err)
{
    const train_kept_t *kept = &run->replica.kept;
    double left = 0; /* number of tensors from the first bad one to the end; 0:
                        all are good */
    err_code_t rc;

    for (int i = 0; i < kept->count && left == 0; i++)
        if (!tensor_finite(&run->world, &kept->tensors[i]))
            left = kept->count - i;
    rc =
        comm_allreduce(run->world.group, &left, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc != ERR_OK || left == 0)
        return rc;
    return train_diverged(kept->tensors[kept->count - (int)left].name,
                          "nan or infinite", run->progress.step,
                          run->dir.saved_step, err);
}

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
    return rc == ERR_OK ? state_check(run, err) : rc;
}

/* Add the checkpoint that was just written to the history and the metrics. */
static void save_note(train_state_t *run, double seconds)
{
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_CHECKPOINT, run->progress.step);

    line.seconds = seconds;
    line.spent = &run->seen.spent;
    line.bytes = 0;
    for (int i = 0; i < run->replica.kept.count; i++) {
        const hdf5io_tensor_t *tensor = &run->replica.kept.tensors[i];
        double elems = 1;

        for (int d = 0; d < tensor->ndim; d++)
            elems *= (double)tensor->dims[d];
        line.bytes += elems * sizeof(float);
    }
    train_seen_mark(run, OBS_SPENT_SAVE);
    if (run->world.rank == 0) {
        train_seen_saved(run, seconds, line.bytes);
        train_lives_add(run, &line);
    }
    train_record_saved(run, seconds, line.bytes);
}

static err_code_t state_write(train_state_t *run, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    train_checkpoint_config_t config;
    double begin = clock_now();
    char size[32];
    err_code_t rc;

    train_record_saving(run);
    train_checkpoint_config_fill(run, &config);
    run->progress.data_samples =
        hdf5io_dataset_samples(run->data.train.dataset);
    run->progress.order =
        hdf5io_sampler_order(run->data.train.sampler, run->progress.epoch);
    rc = hdf5io_checkpoint_write(&config.checkpoint, &run->progress,
                                 run->replica.kept.tensors,
                                 run->replica.kept.count, &info, err);
    train_checkpoint_config_free(&config);
    run->world.speaker = run->world.rank == 0 || rc == ERR_PEER;
    if (rc != ERR_OK)
        return rc;
    check(run->progress.step >= run->dir.saved_step,
          "a checkpoint of step %lld after one of step %lld",
          (long long)run->progress.step, (long long)run->dir.saved_step);
    run->dir.saved_at = clock_now();
    run->dir.saved_step = run->progress.step;
    save_note(run, clock_now() - begin);
    if (run->world.rank == 0)
        log_debug("train", "checkpoint %s in %.2f s (%s by this rank)",
                  info.path, clock_now() - begin,
                  str_bytes((uint64_t)info.bytes_written, size, sizeof size));
    return ERR_OK;
}

err_code_t train_checkpoint(train_state_t *run, err_t *err)
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
