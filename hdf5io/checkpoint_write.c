/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Writing a checkpoint in stages. Each stage ends with a vote, so that all
 * ranks continue or fail together:
 *   begin    rank 0 adopts or removes debris and makes the temporary directory;
 *            the vote tells the other ranks its nonce
 *   data     every rank writes and syncs its shard (or its share of the shared
 *            file), reads it back and hashes it; the vote exchanges sizes and
 *            hashes
 *   details  ranks exchange the offsets of the pieces in each shard, and the
 *            hashes of its blocks, for the manifest
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
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/checkpoint_vote.h"

typedef struct writer {
    const hdf5io_checkpoint_config_t *config;
    const hdf5io_votes_t *votes;
    hdf5io_io_t io;
    hdf5io_manifest_t manifest;
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
    hdf5io_dir_clean(&w->io, home);
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

/* Enter sizes and hashes of all shards from the ballots. */
static void shards_enter(writer_t *w)
{
    for (int r = 0; r < w->votes->size; r++) {
        int file = hdf5io_manifest_file_of(&w->manifest, r);

        if (file < 0)
            continue;
        w->manifest.files[file].bytes = w->ballots[r].numbers[0];
        w->manifest.files[file].hash = w->ballots[r].numbers[1];
    }
}

static err_code_t stage_data(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    int file = hdf5io_manifest_file_of(&w->manifest, w->votes->rank);
    err_code_t rc;

    if (w->config->mpi != NULL)
        hdf5io_files_shared(&w->files, w->config->mpi, &mine);
    else
        hdf5io_files_shard(&w->files, &mine);
    if (file >= 0 && mine.code == ERR_OK) {
        numbers[0] = w->manifest.files[file].bytes;
        numbers[1] = w->manifest.files[file].hash;
    }
    rc = hdf5io_vote(w->votes, &mine, numbers, w->ballots, agreed, err);
    if (rc == ERR_OK && w->config->mpi == NULL)
        shards_enter(w);
    return rc;
}

/* Copy the offsets of all pieces in [file] and the hashes of its blocks to
 * [details] or, with [enter], from there into the manifest.
 * NOLINTBEGIN(clang-analyzer-core.NullDereference): the vote has checked the
 * allocation. */
static void details_copy(hdf5io_manifest_t *m, int file, uint64_t *details,
                         bool enter)
{
    const size_t blocks = file < 0 ? 0 : hdf5io_blocks_count(m, file);
    int n = 0;

    for (int i = 0; i < m->piece_count; i++) {
        if (m->pieces[i].file != file)
            continue;
        if (enter)
            m->pieces[i].offset = (int64_t)details[n++];
        else
            details[n++] = (uint64_t)m->pieces[i].offset;
    }
    for (size_t b = 0; b < blocks; b++)
        if (enter)
            m->files[file].blocks[b] = details[n++];
        else
            details[n++] = m->files[file].blocks[b];
}
/* NOLINTEND(clang-analyzer-core.NullDereference) */

/* The largest number of details that any file has. */
static size_t details_most(const hdf5io_manifest_t *m)
{
    size_t most = 0;

    for (int file = 0; file < m->file_count; file++) {
        size_t n = hdf5io_blocks_count(m, file);

        for (int i = 0; i < m->piece_count; i++)
            n += m->pieces[i].file == file;
        most = n > most ? n : most;
    }
    return most;
}

static err_code_t blocks_open(hdf5io_manifest_t *m, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int file = 0; file < m->file_count && rc == ERR_OK; file++)
        rc = hdf5io_blocks_open(m, file, err);
    return rc;
}

static err_code_t stage_details(writer_t *w, bool *agreed, err_t *err)
{
    hdf5io_manifest_t *m = &w->manifest;
    size_t most = details_most(m), size = (size_t)w->votes->size;
    uint64_t *mine = NULL, *all = NULL;
    err_t memory = ERR_INIT;
    err_code_t rc;

    if (mem_new(uint64_t, most, "a manifest", &mine, &memory) == ERR_OK &&
        mem_new(uint64_t, size * most, "a manifest", &all, &memory) == ERR_OK)
        blocks_open(m, &memory);
    rc = hdf5io_vote(w->votes, &memory, NULL, NULL, agreed, err);
    if (rc == ERR_OK) {
        details_copy(m, hdf5io_manifest_file_of(m, w->votes->rank), mine,
                     false);
        rc = w->votes->exchange(w->votes->context, mine, most * sizeof *mine,
                                all, err);
        *agreed = rc == ERR_OK;
    }
    for (int r = 0; rc == ERR_OK && r < w->votes->size; r++)
        details_copy(m, hdf5io_manifest_file_of(m, r), all + (size_t)r * most,
                     true);
    mem_free(all);
    mem_free(mine);
    return rc;
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
                                             .nonce = w->nonce});
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

static err_code_t stages(writer_t *w, err_t *plan, err_t *err)
{
    bool agreed = true;
    err_code_t rc = stage_begin(w, plan, &agreed, err);

    if (rc == ERR_OK)
        rc = stage_data(w, &agreed, err);
    if (rc == ERR_OK && w->config->mpi == NULL)
        rc = stage_details(w, &agreed, err);
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
    hdf5io_share_close(w.share);
    hdf5io_manifest_free(&w.manifest);
    mem_free(w.ballots);
    return rc;
}
