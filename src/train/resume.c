/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Saving and coming back. The state of a run is the replica's tensors and the
 * progress numbers; random numbers are keyed by them, so nothing else is needed
 * to go on with the same bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"
#include "train/begin.h"
#include "train/changes.h"
#include "train/finite.h"
#include "train/inputs.h"
#include "train/marks.h"
#include "train/plateau.h"
#include "train/run_priv.h"

#define CHANGES_TOLD 30 /* changed keys that get a line each */
#define CHANGES_SAID 5  /* that have room in a sentence */

/* What read and write share; the texts are freed by checkpoint_config_free. */
typedef struct resume_config {
    hdf5io_checkpoint_config_t checkpoint;
    hdf5io_votes_t votes;
    char *directory;
    str_buf_t text;
} resume_config_t;

static err_code_t state_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    const train_votes_t *votes = &((train_state_t *)context)->votes;

    return votes->exchange(votes->context, mine, bytes, all, err);
}

/* Bytes are moving: a long checkpoint is no stuck rank, and what it waits for
 * next may be slow, too. */
static void state_alive(void *context)
{
    train_state_t *run = context;

    train_storage_begin(run, run->phase);
}

static void config_fill(train_state_t *run, resume_config_t *out)
{
    const train_config_t *config = run->config;

    *out = (resume_config_t){.votes = {.context = run,
                                       .rank = run->rank,
                                       .size = run->size,
                                       .exchange = state_exchange,
                                       .alive = state_alive}};
    out->directory = str_printf("%s/checkpoints", config->run.dir);
    opt_print(train_options, config, 0, &out->text);
    out->checkpoint = (hdf5io_checkpoint_config_t){
        .directory = out->directory,
        .votes = &out->votes,
        .mpi = config->checkpoint.io == TRAIN_IO_MPI ? run->mpi : NULL,
        .keep = (int)config->checkpoint.keep,
        .config_hash = train_config_hash(config),
        .model_hash = nn_graph_hash(run->graph),
        .build_hash = run->env->build_hash,
        .config_text = out->text.text,
        .marks = run->marks,
        .mark_count = run->mark_count,
        .versions = run->env->versions,
        .retry_seconds = RETRY_SHARE * config->fault.io_timeout};
}

static void config_free(resume_config_t *config)
{
    str_buf_free(&config->text);
    free(config->directory);
}

/* ---- may it be kept? ----------------------------------------------------- */

/* Of what is alike on all ranks each looks at a share. */
static bool tensor_finite(const train_state_t *run,
                          const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1, first, end;
    bool finite = true;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    first = elems * run->rank / run->size;
    end = elems * (run->rank + 1) / run->size;
    if (tensor->parts == NULL)
        return train_all_finite(tensor->data + first, end - first);
    for (int p = 0; p < tensor->part_count && finite; p++)
        if (tensor->parts[p].rank == run->rank)
            finite =
                train_all_finite(tensor->parts[p].data, tensor->parts[p].count);
    return finite;
}

/* A last update may have spoiled what no loss has seen yet. The first tensor of
 * which any rank knows. */
static err_code_t state_check(train_state_t *run, err_t *err)
{
    const train_kept_t *kept = &run->replica.kept;
    double left = 0; /* tensors from the bad one on; 0: all are good */
    err_code_t rc;

    for (int i = 0; i < kept->count && left == 0; i++)
        if (!tensor_finite(run, &kept->tensors[i]))
            left = kept->count - i;
    rc = comm_allreduce(run->group, &left, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc != ERR_OK || left == 0)
        return rc;
    return train_diverged(run, kept->tensors[kept->count - (int)left].name,
                          "nan or infinite", run->progress.step, err);
}

/* Rank 0 must still have the run directory, and all what is worth keeping. */
static err_code_t keep_check(train_state_t *run, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (run->rundir != NULL)
        rc = train_rundir_check(run->rundir, err);
    if (rc != ERR_OK)
        run->owns_dir = false;
    rc = train_vote(&run->votes, rc, &run->speaker, err);
    return rc == ERR_OK ? state_check(run, err) : rc;
}

static err_code_t state_write(train_state_t *run, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    resume_config_t config;
    double begin = clock_now();
    char size[32];
    err_code_t rc;

    config_fill(run, &config);
    run->progress.data_samples = hdf5io_dataset_samples(run->train.dataset);
    rc = hdf5io_checkpoint_write(&config.checkpoint, &run->progress,
                                 run->replica.kept.tensors,
                                 run->replica.kept.count, &info, err);
    config_free(&config);
    run->speaker = run->rank == 0 || rc == ERR_PEER;
    if (rc != ERR_OK)
        return rc;
    run->last_checkpoint = clock_now();
    run->saved_step = run->progress.step;
    if (run->rank == 0)
        log_debug("train", "checkpoint %s in %.2f s (%s by this rank)",
                  info.path, clock_now() - begin,
                  str_bytes((uint64_t)info.bytes_written, size, sizeof size));
    return ERR_OK;
}

err_code_t train_checkpoint(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_storage_begin(run, "checkpoint");
    rc = keep_check(run, err);
    if (rc == ERR_OK)
        rc = state_write(run, err);
    train_storage_end(run);
    return rc;
}

/* ---- coming back -------------------------------------------------------- */

/* Another order of samples from here on: exactness is gone, so it is said. */
static err_code_t data_check(const train_state_t *run,
                             const hdf5io_progress_t *was, err_t *err)
{
    const int64_t total = hdf5io_dataset_samples(run->train.dataset);
    const char *text = "data.train holds %lld samples, but %lld when the "
                       "checkpoint was written: %s";

    if (was->data_samples == 0 || was->data_samples == total)
        return ERR_OK;
    if (run->config->train.reproducible)
        return err_set(err, ERR_DATA, text, (long long)total,
                       (long long)was->data_samples,
                       "train.reproducible cannot hold over that; restore the "
                       "data or start with --fresh");
    if (run->rank == 0)
        log_warn("train", text, (long long)total, (long long)was->data_samples,
                 "the order of samples changes from here on, and this epoch "
                 "may see some twice or not at all");
    return ERR_OK;
}

/* One split: a warning, or with train.reproducible an error. */
static err_code_t split_check(const train_state_t *run,
                              const train_marks_pair_t *pair, const char *split,
                              err_t *err)
{
    char say[ERR_TEXT_MAX / 2];

    if (train_marks_same(pair, split, say, sizeof say))
        return ERR_OK;
    if (run->config->train.reproducible)
        return err_set(err, ERR_DATA,
                       "%s: train.reproducible cannot hold over that; restore "
                       "the data or start with --fresh",
                       say);
    log_warn("train", "%s: the run goes on with what is there now", say);
    return ERR_OK;
}

/* That nothing was found says less where less was kept. */
static void unknown_say(const train_state_t *run,
                        const hdf5io_manifest_t *manifest, const char *path)
{
    bool whole = true;

    for (int i = 0; i < manifest->mark_count; i++)
        whole = whole && manifest->marks[i].whole;
    if (manifest->mark_count == 0 && run->mark_count > 0)
        log_warn("train",
                 "%s keeps no hashes of its data: whether the data is the same "
                 "now is not known",
                 path);
    else if (!whole && run->config->data.validate == TRAIN_VALIDATE_FULL)
        log_warn("train",
                 "%s keeps hashes of a sample of its data only, as "
                 "data.validate was quick then: changes outside of the sample "
                 "are not known",
                 path);
}

/* Rank 0's part: are the samples those that the checkpoint at [path] has seen?
 * Of another number of samples data_check has spoken. */
static err_code_t marks_look(const train_state_t *run, const char *path,
                             err_t *err)
{
    const int64_t total = hdf5io_dataset_samples(run->train.dataset);
    hdf5io_manifest_t manifest;
    train_marks_pair_t pair;
    uint64_t hash;
    err_code_t rc = hdf5io_manifest_load(path, &manifest, &hash, err);

    if (rc != ERR_OK)
        return rc;
    pair = (train_marks_pair_t){.then = manifest.marks,
                                .then_count = manifest.mark_count,
                                .now = run->marks,
                                .now_count = run->mark_count};
    if (manifest.progress.data_samples == total)
        rc = split_check(run, &pair, "train", err);
    if (rc == ERR_OK)
        rc = split_check(run, &pair, "valid", err);
    if (rc == ERR_OK)
        unknown_say(run, &manifest, path);
    hdf5io_manifest_free(&manifest);
    return rc;
}

/* What rank 0 says of the checkpoint at [path], on all ranks. Collective. */
static err_code_t rank0_check(train_state_t *run,
                              err_code_t (*look)(const train_state_t *run,
                                                 const char *path, err_t *err),
                              const char *path, err_t *err)
{
    err_t said = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (run->rank == 0)
        look(run, path, &said);
    rc = train_tell(&run->votes, 0, &said, sizeof said, err);
    if (rc != ERR_OK || said.code == ERR_OK)
        return rc;
    if (err != NULL)
        *err = said;
    return said.code;
}

/* ---- other settings -------------------------------------------------------
 */

/* Nothing is left to train. */
static bool is_complete(const train_state_t *run)
{
    const hdf5io_progress_t *progress = &run->progress;
    const int64_t left = run->config->train.epochs - progress->epoch;

    return left <= 0 || (left == 1 && progress->epoch_step == run->train.steps);
}

/* Is the checkpoint at [path] one of this run directory? */
static bool is_own(const train_state_t *run, const char *path)
{
    char *parent = str_printf("%s/..", path);
    char *own = str_printf("%s/checkpoints", run->config->run.dir);
    struct stat a, b;
    const bool same = stat(parent, &a) == 0 && stat(own, &b) == 0 &&
                      a.st_dev == b.st_dev && a.st_ino == b.st_ino;

    free(own);
    free(parent);
    return same;
}

/* Its results would be called those of settings that never trained. */
static err_code_t complete_refuse(const train_state_t *run,
                                  const train_changes_t *changes, err_t *err)
{
    str_buf_t list = {0};

    train_changes_print(changes, CHANGES_SAID, &list);
    err_set(err, ERR_CONFIG,
            "run directory %s is complete with another configuration (%s): "
            "raise train.epochs, choose run.name, or --fresh",
            run->config->run.dir, list.text);
    str_buf_free(&list);
    return ERR_CONFIG;
}

/* Each change, once. */
static void changes_say(const train_state_t *run,
                        const train_changes_t *changes)
{
    const long long step = (long long)run->progress.step;

    for (int i = 0; i < changes->count && i < CHANGES_TOLD; i++)
        log_warn("train", "changed since step %lld: %s %s -> %s", step,
                 changes->items[i].key, changes->items[i].was,
                 changes->items[i].now);
    if (changes->count > CHANGES_TOLD)
        log_warn("train", "changed since step %lld: %d more keys", step,
                 changes->count - CHANGES_TOLD);
}

/* What is shown then was trained elsewhere, whatever this run file says. */
static void elsewhere_say(const train_state_t *run, const char *path)
{
    if (is_complete(run) && !is_own(run, path))
        log_warn("train",
                 "%s is the end of another run: nothing is trained here, and "
                 "the results are those of its weights and settings; raise "
                 "train.epochs (now %lld) to train on",
                 path, (long long)run->config->train.epochs);
}

/* The seed is a key of the settings; where these are not known (a checkpoint
 * that another program has written), it is told by itself. */
static void seed_say(const train_state_t *run)
{
    if (run->progress.seed != (uint64_t)run->config->run.seed)
        log_warn("train",
                 "run.seed is %lld but the checkpoint was made with "
                 "%llu: order and dropout change from here on",
                 (long long)run->config->run.seed,
                 (unsigned long long)run->progress.seed);
}

/* Rank 0's part: are the settings those that the checkpoint at [path] was
 * written with? */
static err_code_t settings_look(const train_state_t *run, const char *path,
                                err_t *err)
{
    train_changes_t changes = {0};
    hdf5io_manifest_t manifest;
    err_t why = ERR_INIT;
    uint64_t hash;
    err_code_t rc = hdf5io_manifest_load(path, &manifest, &hash, err);

    if (rc != ERR_OK)
        return rc;
    if (manifest.config_text[0] == '\0')
        seed_say(run);
    else if (train_changes_find(manifest.config_text, run->config, &changes,
                                &why) != ERR_OK)
        log_warn("train", "%s: what has changed since is not known: %s", path,
                 why.text);
    else if (changes.count > 0 && is_complete(run) && is_own(run, path))
        rc = complete_refuse(run, &changes, err);
    else
        changes_say(run, &changes);
    if (rc == ERR_OK)
        elsewhere_say(run, path);
    train_changes_free(&changes);
    hdf5io_manifest_free(&manifest);
    return rc;
}

static void greet(const train_state_t *run,
                  const hdf5io_checkpoint_info_t *info)
{
    char place[64];

    if (run->rank != 0)
        return;
    if (info->progress.epoch < run->config->train.epochs)
        snprintf(place, sizeof place, "epoch %lld",
                 (long long)info->progress.epoch + 1);
    else
        snprintf(place, sizeof place, "%lld epochs done",
                 (long long)info->progress.epoch);
    log_info("train", "resumed from %s (step %lld, %s, written by %d ranks)",
             info->path, (long long)info->progress.step, place,
             info->world_size);
}

/* The samples consumed say where the epoch stands, whatever the batch was; a
 * batch that does not divide them cannot continue exactly. */
static err_code_t place_in_epoch(train_state_t *run, err_t *err)
{
    hdf5io_progress_t *progress = &run->progress;
    int64_t batch = run->config->train.batch;
    int64_t total = hdf5io_dataset_samples(run->train.dataset);

    if (progress->samples > total)
        return err_set(err, ERR_DATA,
                       "the checkpoint has consumed %lld samples of its epoch, "
                       "but data.train holds only %lld: the data changed; "
                       "restore it or start with --fresh",
                       (long long)progress->samples, (long long)total);
    if (progress->samples == total)
        progress->epoch_step = run->train.steps;
    else if (progress->samples % batch == 0)
        progress->epoch_step = progress->samples / batch;
    else
        return err_set(err, ERR_CONFIG,
                       "the checkpoint stands at sample %lld of its epoch, "
                       "which train.batch %lld does not divide: resume with "
                       "the old batch, or start with --fresh",
                       (long long)progress->samples, (long long)batch);
    return ERR_OK;
}

/* From --resume PATH, if the command line counts ([first]); a later life of a
 * job that began there has nothing else until its own first checkpoint. */
static err_code_t state_read(train_state_t *run, bool first, bool *found,
                             hdf5io_checkpoint_info_t *info, err_t *err)
{
    const train_env_t *env = run->env;
    const char *path =
        env->resume == TRAIN_RESUME_PATH ? env->resume_path : NULL;
    const train_replica_t *replica = &run->replica;
    resume_config_t config;
    err_code_t rc;

    config_fill(run, &config);
    rc = train_kept_read(&replica->kept, replica->ddp, &config.checkpoint,
                         first ? path : NULL, found, info, err);
    if (rc == ERR_OK && !*found && path != NULL)
        rc = train_kept_read(&replica->kept, replica->ddp, &config.checkpoint,
                             path, found, info, err);
    config_free(&config);
    return rc;
}

err_code_t train_restore(train_state_t *run, err_t *err)
{
    hdf5io_checkpoint_info_t info;
    const train_resume_t how = run->env->resume;
    bool anew = how == TRAIN_RESUME_NEVER || how == TRAIN_RESUME_FRESH;
    bool found = false;
    err_code_t rc;

    rc = train_begin(run, &run->first, err);
    if (rc != ERR_OK || (anew && run->first))
        return rc;
    rc = state_read(run, run->first, &found, &info, err);
    run->speaker = run->rank == 0 || rc == ERR_PEER;
    if (rc != ERR_OK || !found)
        return rc;
    run->resumed = str_dup(info.path);
    run->progress = info.progress;
    run->saved_step = info.progress.step;
    rc = ddp_step_set(run->replica.ddp, info.progress.step, err);
    greet(run, &info);
    train_plateau_resumed(run);
    if (rc == ERR_OK)
        rc = data_check(run, &info.progress, err);
    if (rc == ERR_OK)
        rc = rank0_check(run, marks_look, info.path, err);
    if (rc == ERR_OK)
        rc = place_in_epoch(run, err);
    if (rc == ERR_OK)
        rc = rank0_check(run, settings_look, info.path, err);
    run->progress.seed = (uint64_t)run->config->run.seed;
    return rc;
}
