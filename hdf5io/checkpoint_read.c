/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading a checkpoint. Rank 0 proposes candidates, newest first. Every rank
 * parses the manifest itself, and all must see the same one. Each rank hashes
 * its share of the files, and a vote decides whether the candidate is intact.
 * Then every rank reads its tensors; the number of writers does not matter.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_read.h"
#include "hdf5io/checkpoint_vote.h"

typedef struct reader {
    const hdf5io_checkpoint_config_t *config;
    const hdf5io_votes_t *votes;
    hdf5io_io_t io;
    hdf5io_ballot_t *ballots; /* [size] */
    hdf5io_entry_t *entries;  /* on rank 0: candidates, newest first */
    int count;
    hdf5io_manifest_t manifest; /* of the current candidate */
    str_buf_t damaged;          /* one sentence per refused candidate */
} reader_t;

/* Compare the manifest's hash across ranks. It differs if the file system shows
 * different files to different ranks. */
static err_code_t same_manifest(const reader_t *r, const char *path, err_t *err)
{
    for (int i = 1; i < r->votes->size; i++)
        if (r->ballots[i].numbers[0] != r->ballots[0].numbers[0])
            return err_set(err, ERR_DATA,
                           "%s/%s: rank %d reads another content than rank 0",
                           path, MANIFEST_NAME, i);
    return ERR_OK;
}

/* Vote on [mine], and exchange [numbers] if all ranks succeed. A rank that
 * cannot read learns nothing about the candidate; so its error takes precedence
 * over damage that another rank found. *damaged is set only if all ranks could
 * read. */
static err_code_t damage_vote(reader_t *r, const err_t *mine,
                              retry_cause_t cause,
                              uint64_t numbers[VOTE_NUMBERS], bool *damaged,
                              err_t *err)
{
    const bool bad = mine->code == ERR_DATA && cause == RETRY_ABSENT;
    const err_t none = ERR_INIT;
    err_code_t rc;

    numbers[VOTE_NUMBERS - 1] = bad;
    rc = hdf5io_vote(r->votes, bad ? &none : mine, numbers, r->ballots, NULL,
                     err);
    for (int i = 0; rc == ERR_OK && i < r->votes->size; i++)
        *damaged |= r->ballots[i].numbers[VOTE_NUMBERS - 1] != 0;
    if (rc != ERR_OK || !*damaged)
        return rc;
    return hdf5io_vote(r->votes, mine, NULL, NULL, NULL, err);
}

/* Is the candidate [path] intact? If not, *damaged is true and the error says
 * why. With *damaged false an error ends the reading. */
static err_code_t candidate_check(reader_t *r, const char *path, bool *damaged,
                                  err_t *err)
{
    err_t mine = ERR_INIT;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    const hdf5io_saved_t saved = {&r->io, path, &r->manifest};
    retry_cause_t cause = RETRY_ABSENT;
    err_code_t rc;

    *damaged = false;
    hdf5io_manifest_free(&r->manifest);
    hdf5io_checkpoint_manifest(&r->io, path, &r->manifest, &numbers[0], &cause,
                               &mine);
    rc = damage_vote(r, &mine, cause, numbers, damaged, err);
    if (rc != ERR_OK)
        return rc;
    rc = same_manifest(r, path, err);
    *damaged = rc != ERR_OK;
    if (rc != ERR_OK)
        return rc;
    for (int i = r->votes->rank;
         i < r->manifest.file_count && mine.code == ERR_OK; i += r->votes->size)
        hdf5io_checkpoint_check(&saved, i, &cause, &mine);
    return damage_vote(r, &mine, cause, numbers, damaged, err);
}

/* Get the path of the [index]-th newest candidate (to be freed); NULL: there
 * are no more. Rank 0 lists the directory once and tells all ranks. */
static err_code_t candidate_next(reader_t *r, int index, char **path,
                                 err_t *err)
{
    err_t mine = ERR_INIT;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    const uint64_t *said = r->ballots[0].numbers;
    err_code_t rc;

    if (r->votes->rank == 0 && index == 0)
        hdf5io_dir_candidates(&r->io, r->config->directory, &r->entries,
                              &r->count, &mine);
    if (index < r->count) {
        numbers[0] = 1 + (uint64_t)r->entries[index].kind;
        numbers[1] = (uint64_t)r->entries[index].step;
        numbers[2] = r->entries[index].nonce;
    }
    rc = hdf5io_vote(r->votes, &mine, numbers, r->ballots, NULL, err);
    check(rc != ERR_OK || said[0] <= 1 + (uint64_t)HDF5IO_TRASH,
          "rank 0 names a candidate of kind %llu", (unsigned long long)said[0]);
    if (rc == ERR_OK)
        *path = said[0] == 0 ? NULL
                             : hdf5io_dir_entry(r->config->directory,
                                                (hdf5io_kind_t)(said[0] - 1),
                                                (int64_t)said[1], said[2]);
    return rc;
}

static void damage_note(reader_t *r, const err_t *why)
{
    str_buf_add(&r->damaged, "%s%s", r->damaged.length == 0 ? "" : "; ",
                why->text);
    if (r->votes->rank == 0)
        log_warn("hdf5io", "a checkpoint is damaged, trying the previous: %s",
                 why->text);
}

/* Find the newest intact checkpoint; *path stays NULL if there is no checkpoint
 * at all. */
static err_code_t candidate_find(reader_t *r, char **path, err_t *err)
{
    for (int i = 0;; i++) {
        err_t why = ERR_INIT;
        bool damaged;
        char *candidate = NULL;
        err_code_t rc = candidate_next(r, i, &candidate, err);

        if (rc != ERR_OK)
            return rc;
        if (candidate == NULL && i == 0)
            return ERR_OK;
        if (candidate == NULL)
            return err_set(err, ERR_DATA,
                           "no checkpoint in %s is intact; to start anew "
                           "without them, use --fresh: %s",
                           r->config->directory, r->damaged.text);
        rc = candidate_check(r, candidate, &damaged, &why);
        if (rc == ERR_OK) {
            *path = candidate;
            return ERR_OK;
        }
        free(candidate);
        if (!damaged)
            return err_copy(err, &why);
        damage_note(r, &why);
    }
}

static bool same_shape(const hdf5io_tensor_t *want,
                       const hdf5io_manifest_tensor_t *have)
{
    return want->ndim == have->ndim &&
           memcmp(want->dims, have->dims,
                  (size_t)want->ndim * sizeof *want->dims) == 0;
}

/* Index of the tensor called [name]; usually it is [guess]. -1: none. */
static int tensor_find(const hdf5io_manifest_t *m, const char *name, int guess)
{
    if (guess < m->tensor_count && strcmp(m->tensors[guess].name, name) == 0)
        return guess;
    for (int i = 0; i < m->tensor_count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return i;
    return -1;
}

/* Is any wanted tensor in the same group ("model/") as [name]? A reader that
 * wants nothing of a group (such as the optimizer's state during evaluation)
 * may ignore it. */
static bool group_wanted(const hdf5io_tensor_t *tensors, int count,
                         const char *name)
{
    size_t length = strcspn(name, "/");

    for (int i = 0; i < count; i++)
        if (strncmp(tensors[i].name, name, length + 1) == 0)
            return true;
    return false;
}

/* Check that all wanted tensors exist with their shapes, and that their groups
 * contain no others. */
static err_code_t model_compare(const hdf5io_manifest_t *m, const char *path,
                                const hdf5io_tensor_t *tensors, int count,
                                err_t *err)
{
    char expected[160], found[160];

    for (int i = 0; i < count; i++) {
        int j = tensor_find(m, tensors[i].name, i);

        hdf5io_shape_format(tensors[i].ndim, tensors[i].dims, expected,
                            sizeof expected);
        if (j < 0)
            return err_set(err, ERR_CONFIG,
                           "%s is of another model or optimizer: it has no "
                           "tensor %s, expected with shape %s; restore the "
                           "run file it was made with, or say --fresh",
                           path, tensors[i].name, expected);
        if (!same_shape(&tensors[i], &m->tensors[j]))
            return err_set(err, ERR_CONFIG,
                           "%s is of another model: tensor %s has shape %s, "
                           "expected %s; restore the run file it was made "
                           "with, or say --fresh",
                           path, tensors[i].name,
                           hdf5io_shape_format(m->tensors[j].ndim,
                                               m->tensors[j].dims, found,
                                               sizeof found),
                           expected);
    }
    for (int i = 0; i < m->tensor_count; i++) {
        int j = 0;

        if (i < count && strcmp(tensors[i].name, m->tensors[i].name) == 0)
            continue;
        while (j < count && strcmp(tensors[j].name, m->tensors[i].name) != 0)
            j++;
        if (j == count && group_wanted(tensors, count, m->tensors[i].name))
            return err_set(err, ERR_CONFIG,
                           "%s is of another model or optimizer: it has a "
                           "tensor %s that this run does not have; restore "
                           "the run file it was made with, or say --fresh",
                           path, m->tensors[i].name);
    }
    return ERR_OK;
}

/* Read the whole [tensor], or the parts that this rank holds. */
static void tensor_read(const reader_t *r, const char *path,
                        const hdf5io_tensor_t *tensor, int number, err_t *err)
{
    const hdf5io_saved_t saved = {&r->io, path, &r->manifest};

    if (tensor->parts == NULL)
        hdf5io_checkpoint_fetch(&saved, number, tensor->data, err);
    for (int p = 0;
         tensor->parts != NULL && p < tensor->part_count && err->code == ERR_OK;
         p++) {
        const hdf5io_part_t *part = &tensor->parts[p];
        const hdf5io_range_t range = {number, part->first, part->count,
                                      part->data};

        if (part->rank == r->votes->rank)
            hdf5io_checkpoint_fetch_range(&saved, &range, err);
    }
}

static err_code_t tensors_read(const reader_t *r, const char *path,
                               const hdf5io_tensor_t *tensors, int count,
                               err_t *err)
{
    err_t mine = ERR_INIT;

    for (int i = 0; i < count && mine.code == ERR_OK; i++)
        tensor_read(r, path, &tensors[i],
                    tensor_find(&r->manifest, tensors[i].name, i), &mine);
    return hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
}

/* Called by rank 0: warn about other versions, since the last bits of results
 * depend on libraries, CPU and instruction set. */
static void versions_compare(const reader_t *r, const char *path)
{
    char *here = hdf5io_manifest_versions(r->config->versions);

    if (strcmp(here, r->manifest.versions) != 0)
        log_warn("hdf5io",
                 "%s was made with %s; this is %s: results may differ in "
                 "their last bits from here on",
                 path, r->manifest.versions, here);
    free(here);
}

/* With model_strict: does the checkpoint belong to the caller's model? */
static err_code_t model_hash_compare(const reader_t *r, const char *path,
                                     err_t *err)
{
    const uint64_t want = r->config->model_hash, have = r->manifest.model_hash;

    if (!r->config->model_strict || want == have)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s is of another model: it was written for model 0x%llx, "
                   "expected 0x%llx",
                   path, (unsigned long long)have, (unsigned long long)want);
}

static err_code_t candidate_read(const reader_t *r, const char *path,
                                 const hdf5io_tensor_t *tensors, int count,
                                 hdf5io_checkpoint_info_t *info, err_t *err)
{
    const hdf5io_manifest_t *m = &r->manifest;
    err_t mine = ERR_INIT;
    err_code_t rc;

    if (model_hash_compare(r, path, &mine) == ERR_OK)
        model_compare(m, path, tensors, count, &mine);
    rc = hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
    if (rc == ERR_OK)
        rc = tensors_read(r, path, tensors, count, err);
    if (rc != ERR_OK)
        return rc;
    if (r->votes->rank == 0 && r->config->versions != NULL)
        versions_compare(r, path);
    if (r->votes->rank == 0 && r->config->model_hash != m->model_hash)
        log_warn("hdf5io",
                 "%s: its tensors fit, but the model section of the run file "
                 "is not the one it was made with",
                 path);
    if (info != NULL) {
        snprintf(info->path, sizeof info->path, "%s", path);
        info->progress = m->progress;
        info->world_size = m->world_size;
        info->bytes_written = 0;
    }
    return ERR_OK;
}

err_code_t hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                                  const char *path,
                                  const hdf5io_tensor_t *tensors, int count,
                                  bool *found, hdf5io_checkpoint_info_t *info,
                                  err_t *err)
{
    reader_t r = {
        .config = config, .votes = config->votes, .io = hdf5io_io_of(config)};
    char *chosen = NULL;
    bool damaged;
    err_code_t rc;

    rc = mem_new(hdf5io_ballot_t, (size_t)r.votes->size, "a vote", &r.ballots,
                 err);
    if (rc != ERR_OK)
        return rc;
    if (path == NULL)
        rc = candidate_find(&r, &chosen, err);
    else
        rc = candidate_check(&r, path, &damaged, err);
    if (rc == ERR_OK && path != NULL)
        chosen = str_dup(path);
    if (rc == ERR_OK && chosen != NULL)
        rc = candidate_read(&r, chosen, tensors, count, info, err);
    if (rc == ERR_OK)
        *found = chosen != NULL;
    free(chosen);
    hdf5io_manifest_free(&r.manifest);
    str_buf_free(&r.damaged);
    free(r.entries);
    mem_free(r.ballots);
    return rc;
}
