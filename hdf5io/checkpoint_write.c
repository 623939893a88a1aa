/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Writing a checkpoint in stages. Each stage ends with a vote, so that all
 * ranks continue or fail together:
 *   begin    rank 0 adopts or removes debris and makes the temporary directory;
 *            the vote tells the other ranks its nonce
 *   head     the head of each shard, the lowest of the ranks that write it,
 *            makes its headers, creates it and reserves its space; the ranks
 *            exchange the offsets of the pieces in each shard
 *   data     every rank writes, hashes and syncs its shard, or its part of it
 *   sums     ranks that write a shard together read its blocks back and hash
 *            them; the ranks exchange the hashes of all shards
 *   shared   with MPI-IO, in place of the last three: every rank writes and
 *            syncs its share of the shared file
 *   publish  rank 0 writes the file of virtual datasets and the manifest, syncs
 *            the directory, renames it and retires old checkpoints
 * Until the rename nothing exists that reading would accept as a checkpoint.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_details.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/checkpoint_vote.h"

typedef struct writer {
    const hdf5io_checkpoint_config_t *config;
    const hdf5io_votes_t *votes;
    hdf5io_io_t io;
    hdf5io_manifest_t manifest;
    hdf5io_details_t details; /* unused with MPI-IO */
    hdf5io_files_t files;
    hdf5io_share_t *share;    /* NULL: it is the configuration's */
    hdf5io_ballot_t *ballots; /* [size] */
    int64_t step;
    uint64_t nonce;
    char *tmp,
        *final; /* paths of the directory; [tmp] is NULL before stage begin */
} writer_t;

/* Make the directory of checkpoints and sync its parent, so that its name is
 * durable before a checkpoint in it counts as published. */
static err_code_t home_make(writer_t *w, err_t *err)
{
    char *parent = str_printf("%s/..", w->config->directory);
    err_code_t rc = file_make_dirs(w->config->directory, err);

    if (rc == ERR_OK)
        rc = hdf5io_io_sync(&w->io, parent, err);
    free(parent);
    return rc;
}

static err_code_t begin(writer_t *w, err_t *err)
{
    const char *home = w->config->directory;
    err_code_t rc = home_make(w, err);

    if (rc != ERR_OK)
        return rc;
    rc = hdf5io_dir_adopt(&w->io, home, err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_dir_clean(&w->io, home, w->config->retire_later);
    w->nonce = hdf5io_dir_nonce();
    w->tmp = hdf5io_dir_path(home, ".tmp-", w->step, w->nonce);
    if (mkdir(w->tmp, 0777) == 0)
        return ERR_OK;
    rc = err_set(err, ERR_IO, "%s: cannot create: %s", w->tmp, strerror(errno));
    free(w->tmp);
    w->tmp = NULL;
    return rc;
}

static err_code_t stage_begin(writer_t *w, err_t *plan, bool *agreed,
                              err_t *err)
{
    const uint64_t *numbers;
    uint64_t mine[VOTE_NUMBERS] = {0};
    err_code_t rc;

    if (w->votes->rank == 0 && plan->code == ERR_OK)
        begin(w, plan);
    mine[0] = w->nonce;
    rc = hdf5io_vote(w->votes, plan, mine, w->ballots, agreed, err);
    if (rc != ERR_OK)
        return rc;
    numbers = w->ballots[0].numbers;
    w->nonce = numbers[0];
    if (w->tmp == NULL)
        w->tmp =
            hdf5io_dir_path(w->config->directory, ".tmp-", w->step, w->nonce);
    w->files.directory = w->tmp;
    return ERR_OK;
}

/* Vote on [mine], the outcome of a stage. */
static err_code_t stage_vote(const writer_t *w, const err_t *mine, bool *agreed,
                             err_t *err)
{
    return hdf5io_vote(w->votes, mine, NULL, NULL, agreed, err);
}

static err_code_t stage_shared(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;

    hdf5io_files_shared(&w->files, w->config->mpi, &mine);
    return stage_vote(w, &mine, agreed, err);
}

static err_code_t stage_head(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    hdf5io_files_head(&w->files, &mine);
    rc = stage_vote(w, &mine, agreed, err);
    return rc == ERR_OK ? hdf5io_details_places(&w->details, agreed, err) : rc;
}

static err_code_t stage_data(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;

    hdf5io_files_shard(&w->files, &mine);
    return stage_vote(w, &mine, agreed, err);
}

static err_code_t stage_sums(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    hdf5io_files_sums(&w->files, &mine);
    rc = stage_vote(w, &mine, agreed, err);
    return rc == ERR_OK ? hdf5io_details_hashes(&w->details, agreed, err) : rc;
}

/* Parse the manifest as a reader would: a checkpoint that could not be resumed
 * is not published. */
static err_code_t manifest_check(const str_buf_t *text, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    err_t why = ERR_INIT;

    if (hdf5io_manifest_parse(text->text, text->length, &m, &hash, &why) !=
        ERR_OK)
        return err_set(err, ERR_CONFIG,
                       "a checkpoint of this state could not be read back: %s",
                       why.text);
    hdf5io_manifest_free(&m);
    return ERR_OK;
}

static err_code_t manifest_write(writer_t *w, err_t *err)
{
    char *path = str_printf("%s/%s", w->tmp, MANIFEST_NAME);
    str_buf_t text = {0};
    err_code_t rc = hdf5io_manifest_print(&w->manifest, &text, err);

    if (rc == ERR_OK)
        rc = manifest_check(&text, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_create(&w->io, path, text.text, text.length, err);
    if (rc == ERR_OK && w->files.disk)
        rc = hdf5io_io_compare(&w->io, path, hash_bytes(text.text, text.length),
                               err);
    if (rc == ERR_OK)
        w->files.bytes += (int64_t)text.length;
    str_buf_free(&text);
    free(path);
    return rc;
}

/* Has another process, which is reading now, taken the directory for debris and
 * renamed it to its final name? */
static bool named_already(const writer_t *w, const struct stat *mine)
{
    struct stat st;

    return lstat(w->tmp, &st) != 0 && lstat(w->final, &st) == 0 &&
           st.st_dev == mine->st_dev && st.st_ino == mine->st_ino;
}

static err_code_t name_give(writer_t *w, const struct stat *mine, err_t *err)
{
    const char *home = w->config->directory;
    err_t why = ERR_INIT;
    err_code_t rc =
        hdf5io_dir_publish(&w->io, home, w->tmp, w->step, w->nonce, &why);

    if (rc != ERR_OK && named_already(w, mine))
        return hdf5io_io_sync(&w->io, home, err);
    if (rc != ERR_OK)
        err_copy(err, &why);
    return rc;
}

/* The checkpoint is there, so a failure is only logged. */
static void best_note(const writer_t *w)
{
    err_t why = ERR_INIT;

    if (w->config->best != NULL &&
        hdf5io_best_write(w->config->directory, w->config->best, &why) !=
            ERR_OK)
        log_warn("hdf5io",
                 "%s; %s is the best checkpoint, but will be deleted like any "
                 "other",
                 why.text, w->final);
}

/* Publish the checkpoint; called by rank 0 only. */
static err_code_t publish(writer_t *w, err_t *err)
{
    struct stat mine;
    err_code_t rc = ERR_OK;

    if (lstat(w->tmp, &mine) != 0)
        return err_set(err, ERR_IO, "%s: it is gone: %s", w->tmp,
                       strerror(errno));

    if (w->config->mpi != NULL && w->manifest.piece_count > 0)
        rc = hdf5io_files_hash(&w->files, 0, err);
    if (rc == ERR_OK)
        rc = hdf5io_files_view(&w->files, err);
    if (rc == ERR_OK)
        rc = manifest_write(w, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_sync(&w->io, w->tmp, err);
    /* Checkpoints of later steps are renamed before this one is published.
     * Otherwise, if the process died between the two renames, a resume would
     * choose one of them as the newest. */
    if (rc == ERR_OK)
        rc = hdf5io_dir_supersede(&w->io, w->config->directory, w->step,
                                  w->nonce, err);
    if (rc == ERR_OK)
        rc = name_give(w, &mine, err);
    if (rc == ERR_OK)
        best_note(w);
    if (rc == ERR_OK)
        hdf5io_dir_retire(&w->io, w->config->directory,
                          &(hdf5io_retire_t){.step = w->step,
                                             .keep = w->config->keep,
                                             .every = w->config->keep_every,
                                             .nonce = w->nonce,
                                             .later = w->config->retire_later});
    return rc;
}

static err_code_t stage_publish(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;

    if (w->votes->rank == 0)
        publish(w, &mine);
    return hdf5io_vote(w->votes, &mine, NULL, NULL, agreed, err);
}

/* Remove the temporary directory after a failure that all ranks know of, so no
 * rank uses it any more. */
static void debris_remove(const writer_t *w)
{
    err_t err = ERR_INIT;

    if (w->votes->rank == 0 && w->tmp != NULL &&
        file_remove_tree(w->tmp, &err) != ERR_OK)
        log_warn("hdf5io", "cannot remove an unfinished checkpoint: %s",
                 err.text);
}

static err_code_t stages_shards(writer_t *w, bool *agreed, err_t *err)
{
    err_code_t rc = stage_head(w, agreed, err);

    if (rc == ERR_OK)
        rc = stage_data(w, agreed, err);
    return rc == ERR_OK ? stage_sums(w, agreed, err) : rc;
}

static err_code_t stages(writer_t *w, err_t *plan, err_t *err)
{
    bool agreed = true;
    err_code_t rc = stage_begin(w, plan, &agreed, err);

    if (rc == ERR_OK)
        rc = w->config->mpi != NULL ? stage_shared(w, &agreed, err)
                                    : stages_shards(w, &agreed, err);
    if (rc == ERR_OK)
        rc = stage_publish(w, &agreed, err);
    if (rc != ERR_OK && agreed)
        debris_remove(w);
    return rc;
}

static err_code_t writer_plan(writer_t *w, const hdf5io_progress_t *progress,
                              const hdf5io_tensor_t *tensors, int count,
                              err_t *err)
{
    err_code_t rc;

    if (w->config->keep < 1 || progress->step < 0)
        return err_set(err, ERR_CONFIG,
                       "a checkpoint needs keep >= 1 and step >= 0, not %d "
                       "and %lld",
                       w->config->keep, (long long)progress->step);
    rc = hdf5io_manifest_build(w->config, progress, tensors, count,
                               &w->manifest, err);
    if (rc == ERR_OK && w->config->mpi == NULL)
        rc = hdf5io_details_open(&w->manifest, w->votes, &w->details, err);
    if (rc == ERR_OK && w->config->mpi == NULL && w->config->share == NULL)
        rc = hdf5io_share_open(tensors, count, w->votes->rank, w->votes->size,
                               &w->share, err);
    return rc;
}

err_code_t hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                                   const hdf5io_progress_t *progress,
                                   const hdf5io_tensor_t *tensors, int count,
                                   hdf5io_checkpoint_info_t *info, err_t *err)
{
    writer_t w = {.config = config,
                  .votes = config->votes,
                  .io = hdf5io_io_of(config),
                  .step = progress->step};
    err_t plan = ERR_INIT;
    err_code_t rc;

    rc = mem_new(hdf5io_ballot_t, (size_t)w.votes->size, "a vote", &w.ballots,
                 err);
    if (rc != ERR_OK)
        return rc;
    writer_plan(&w, progress, tensors, count, &plan);
    w.files =
        (hdf5io_files_t){.io = &w.io,
                         .tensors = tensors,
                         .share = w.share != NULL ? w.share : config->share,
                         .manifest = &w.manifest,
                         .details = &w.details,
                         .header = HDF5IO_HEADER_NONE,
                         .rank = w.votes->rank,
                         .disk = config->verify_disk};
    w.final = hdf5io_dir_path(config->directory, "", w.step, 0);
    rc = stages(&w, &plan, err);
    if (rc == ERR_OK && info != NULL) {
        snprintf(info->path, sizeof info->path, "%s", w.final);
        info->progress = *progress;
        info->world_size = w.votes->size;
        info->bytes_written = w.files.bytes;
    }
    free(w.final);
    free(w.tmp);
    hdf5io_header_close(&w.files.header);
    hdf5io_details_close(&w.details);
    hdf5io_share_close(w.share);
    hdf5io_manifest_free(&w.manifest);
    mem_free(w.ballots);
    return rc;
}
