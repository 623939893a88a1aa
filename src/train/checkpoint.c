/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a run is the replica's tensors and the counters of its progress.
 * Random numbers are keyed by these counters, so tensors and counters are
 * enough to resume with the same bits.
 */
#include "train/checkpoint.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/retry.h"
#include "train/best.h"
#include "train/lives.h"
#include "train/record.h"
#include "train/relay.h"
#include "train/save_failed.h"
#include "train/seen.h"
#include "train/sweeper.h"

static err_code_t state_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    const train_votes_t *votes = &((train_world_t *)context)->votes;

    return votes->exchange(votes->context, mine, bytes, all, err);
}

static err_code_t state_spread(void *context, void *data, const size_t *cuts,
                               err_t *err)
{
    return train_relay(((train_world_t *)context)->group, data, cuts, err);
}

static err_code_t state_broadcast(void *context, void *data, size_t bytes,
                                  err_t *err)
{
    comm_group_t *group = ((train_world_t *)context)->group;

    return comm_broadcast(group, data, bytes, 0, err);
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
    bool best;

    *out = (train_checkpoint_config_t){
        .votes = {.context = &run->world,
                  .rank = run->world.rank,
                  .size = run->world.size,
                  .exchange = state_exchange,
                  .alive = state_alive,
                  .spread = state_spread,
                  .together = train_relay_together(run->world.group),
                  .broadcast = state_broadcast}};
    out->directory = str_printf("%s/checkpoints", config->run.dir);
    opt_print(train_options, config, 0, &out->text);
    best = train_best_of(run, &out->best);
    out->checkpoint = (hdf5io_checkpoint_config_t){
        .directory = out->directory,
        .votes = &out->votes,
        .mpi = config->checkpoint.io == TRAIN_IO_MPI ? run->world.mpi : NULL,
        .share = run->replica.kept.share,
        .heads = run->replica.kept.heads,
        .keep = (int)config->checkpoint.keep,
        .keep_every = config->checkpoint.keep_every,
        .retire_later = run->saving.sweeper != NULL,
        .best = best ? &out->best : NULL,
        .verify_disk = config->checkpoint.verify == TRAIN_VERIFY_DISK,
        .format = (int)config->checkpoint.format,
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

/* ---- what was written ---------------------------------------------------- */

train_saved_t train_saved_of(const train_state_t *run)
{
    return (train_saved_t){.step = run->progress.step,
                           .epoch = run->progress.epoch,
                           .bytes = train_kept_bytes(&run->replica.kept)};
}

void train_saved_add(const train_state_t *run, const train_saved_t *saved,
                     const obs_spent_t *spent)
{
    obs_lives_line_t line = obs_lives_line(OBS_LIVES_CHECKPOINT, saved->step);

    line.seconds = saved->seconds;
    line.bytes = saved->bytes;
    line.spent = spent;
    if (run->world.rank == 0)
        train_lives_add(run, &line);
}

void train_saved_note(train_state_t *run, const train_saved_t *saved)
{
    check(saved->step >= run->dir.saved_step,
          "a checkpoint of step %lld after one of step %lld",
          (long long)saved->step, (long long)run->dir.saved_step);
    run->dir.saved_at = clock_now();
    run->dir.saved_step = run->dir.checkpoint_step = saved->step;
    train_save_done(run);
    train_best_saved(run);
    if (run->world.rank == 0)
        train_seen_saved(run, saved);
    train_record_saved(run, saved);
    train_sweeper_ask(run->saving.sweeper);
}
