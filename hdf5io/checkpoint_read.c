/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading a checkpoint. Rank 0 proposes candidates, newest first, and tells all
 * ranks the text of the manifest. Then all ranks read the candidate together
 * (checkpoint_load.h); the number of writers does not matter. If a candidate
 * turns out to be damaged, the next one overwrites what was read from it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_load.h"
#include "hdf5io/checkpoint_model.h"

typedef struct reader {
    const hdf5io_checkpoint_config_t *config;
    const hdf5io_votes_t *votes;
    const hdf5io_tensor_t *tensors; /* [tensor_count], wanted */
    int tensor_count;
    hdf5io_io_t io;
    hdf5io_spread_t spread;
    hdf5io_ballot_t *ballots; /* [size] */
    hdf5io_entry_t *entries;  /* on rank 0: candidates, newest first */
    int count;
    hdf5io_manifest_t manifest; /* of the current candidate */
    str_buf_t damaged;          /* one sentence per refused candidate */
} reader_t;

/* ---- manifest ------------------------------------------------------------ */

/* On rank 0: read and parse the manifest of [path]. */
static void text_read(reader_t *r, const char *path, char **text, size_t *bytes,
                      retry_cause_t *cause, err_t *err)
{
    uint64_t hash;

    *cause = RETRY_ABSENT;
    if (r->votes->rank == 0 &&
        hdf5io_checkpoint_text(&r->io, path, text, bytes, cause, err) ==
            ERR_OK &&
        hdf5io_checkpoint_parse(path, *text, *bytes, &r->manifest, &hash,
                                err) != ERR_OK)
        *cause = RETRY_ABSENT;
}

/* Give all ranks the manifest, whose text rank 0 has. */
static err_code_t text_tell(reader_t *r, const char *path, char **text,
                            size_t bytes, err_t *err)
{
    err_t mine = ERR_INIT;
    uint64_t hash;
    err_code_t rc;

    if (r->votes->size == 1)
        return ERR_OK;
    if (r->votes->rank != 0 && (*text = malloc(bytes + 1)) == NULL)
        err_set(&mine, ERR_MEMORY, "%s/%s: no memory for its %zu bytes", path,
                MANIFEST_NAME, bytes);
    rc = hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
    if (rc == ERR_OK)
        rc = hdf5io_spread_first(&r->spread, *text, bytes, err);
    if (rc != ERR_OK)
        return rc;
    if (r->votes->rank != 0)
        hdf5io_checkpoint_parse(path, *text, bytes, &r->manifest, &hash, &mine);
    return hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
}

/* Get the manifest of [path] on all ranks. *damaged as in candidate_read. */
static err_code_t manifest_get(reader_t *r, const char *path, bool *damaged,
                               err_t *err)
{
    err_t mine = ERR_INIT;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    retry_cause_t cause;
    char *text = NULL;
    size_t bytes = 0;
    err_code_t rc;

    hdf5io_manifest_free(&r->manifest);
    text_read(r, path, &text, &bytes, &cause, &mine);
    numbers[0] = bytes;
    rc = hdf5io_load_vote(r->votes, r->ballots, &mine, cause, numbers, damaged,
                          err);
    if (rc == ERR_OK)
        rc = text_tell(r, path, &text, (size_t)r->ballots[0].numbers[0], err);
    free(text);
    return rc;
}

/* ---- one candidate ------------------------------------------------------- */

/* Which tensors does this rank want? numbers[0] is a hash of the answer,
 * numbers[1] the number of tensors. */
static void wanted_sum(const hdf5io_manifest_t *m, const int *wanted,
                       uint64_t numbers[VOTE_NUMBERS])
{
    hash_state_t *state = hash_state_open();

    for (int i = 0; i < m->tensor_count; i++) {
        const uint64_t wants = wanted[i] >= 0;

        hash_state_add(state, &wants, sizeof wants);
        numbers[1] += wants;
    }
    numbers[0] = hash_state_value(state);
    hash_state_free(state);
}

/* Do all ranks want the same tensors, so that they can share the reading?
 * [other]: why this rank wants none. If some ranks have such an error and
 * others have none, this error is returned on all ranks. */
static err_code_t wanted_agree(const reader_t *r, const char *path,
                               const err_t *other, err_t *err)
{
    const hdf5io_ballot_t *b = r->ballots;
    int rank = 1;
    err_code_t rc;

    while (rank < r->votes->size && b[rank].numbers[0] == b[0].numbers[0])
        rank++;
    if (rank >= r->votes->size)
        return ERR_OK;
    rc = hdf5io_vote(r->votes, other, NULL, NULL, NULL, err);
    if (rc != ERR_OK)
        return rc;
    return err_set(err, ERR_CONFIG,
                   "%s: rank %d wants %" PRIu64 " of its tensors, and rank 0 "
                   "wants %" PRIu64 "%s: all ranks must name the same tensors",
                   path, rank, b[rank].numbers[1], b[0].numbers[1],
                   b[rank].numbers[1] == b[0].numbers[1] ? " others" : "");
}

/* Compare the candidate [path] with the tensors of this run, and set [wanted].
 * If it is of another model, [other] says so, and nothing is wanted. */
static err_code_t tensors_match(reader_t *r, const char *path, int *wanted,
                                err_t *other, err_t *err)
{
    const hdf5io_manifest_t *m = &r->manifest;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    const err_t fine = ERR_INIT;
    err_code_t rc;

    if (hdf5io_model_compare(r->config, m, path, r->tensors, r->tensor_count,
                             wanted, other) != ERR_OK)
        for (int i = 0; i < m->tensor_count; i++)
            wanted[i] = -1;
    wanted_sum(m, wanted, numbers);
    rc = hdf5io_vote(r->votes, &fine, numbers, r->ballots, NULL, err);
    return rc == ERR_OK ? wanted_agree(r, path, other, err) : rc;
}

/* Read the tensors of this run from the candidate [path]. If it is of another
 * model, no tensor is filled, but all hashes are compared: if it is damaged as
 * well, the damage is reported. */
static err_code_t tensors_read(reader_t *r, const char *path, bool *damaged,
                               err_t *err)
{
    const hdf5io_manifest_t *m = &r->manifest;
    err_t memory = ERR_INIT, other = ERR_INIT;
    int *wanted = NULL;
    hdf5io_load_t load = {.saved = {&r->io, path, m},
                          .spread = &r->spread,
                          .window = r->config->window_bytes,
                          .ballots = r->ballots,
                          .tensors = r->tensors};
    err_code_t rc;

    mem_new(int, (size_t)m->tensor_count, "reading a checkpoint", &wanted,
            &memory);
    rc = hdf5io_vote(r->votes, &memory, NULL, NULL, NULL, err);
    if (rc == ERR_OK)
        rc = tensors_match(r, path, wanted, &other, err);
    load.wanted = wanted;
    if (rc == ERR_OK)
        rc = hdf5io_load(&load, damaged, err);
    if (rc == ERR_OK)
        rc = hdf5io_vote(r->votes, &other, NULL, NULL, NULL, err);
    mem_free(wanted);
    return rc;
}

/* Read the candidate [path]. If it is not intact, *damaged is true and the
 * error says why. With *damaged false an error ends the reading. */
static err_code_t candidate_read(reader_t *r, const char *path, bool *damaged,
                                 err_t *err)
{
    err_code_t rc;

    *damaged = false;
    rc = manifest_get(r, path, damaged, err);
    return rc == ERR_OK ? tensors_read(r, path, damaged, err) : rc;
}

/* ---- candidates ---------------------------------------------------------- */

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

/* Read the newest intact checkpoint; *path stays NULL if there is no checkpoint
 * at all. *none_whole becomes true if all are damaged. */
static err_code_t newest_read(reader_t *r, char **path, bool *none_whole,
                              err_t *err)
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
        *none_whole = candidate == NULL;
        if (candidate == NULL)
            return err_set(err, ERR_DATA,
                           "no checkpoint in %s is intact; to start anew "
                           "without them, use --fresh: %s",
                           r->config->directory, r->damaged.text);
        rc = candidate_read(r, candidate, &damaged, &why);
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

/* Rank 0 warns, and [info] is filled. */
static void chosen_note(const reader_t *r, const char *path,
                        hdf5io_checkpoint_info_t *info)
{
    const hdf5io_manifest_t *m = &r->manifest;

    if (r->votes->rank == 0)
        hdf5io_model_warn(r->config, m, path);
    if (info == NULL)
        return;
    snprintf(info->path, sizeof info->path, "%s", path);
    info->progress = m->progress;
    info->world_size = m->world_size;
    info->bytes_written = 0;
}

static err_code_t reader_open(reader_t *r, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc = mem_new(hdf5io_ballot_t, (size_t)r->votes->size, "a vote",
                            &r->ballots, err);

    if (rc != ERR_OK)
        return rc;
    hdf5io_spread_open(r->votes, &r->spread, &mine);
    return hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
}

err_code_t hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                                  const char *path,
                                  const hdf5io_tensor_t *tensors, int count,
                                  bool *found, hdf5io_checkpoint_info_t *info,
                                  err_t *err)
{
    reader_t r = {.config = config,
                  .votes = config->votes,
                  .tensors = tensors,
                  .tensor_count = count,
                  .io = hdf5io_io_of(config)};
    char *chosen = NULL;
    bool damaged, none_whole = false;
    err_code_t rc = reader_open(&r, err);

    if (rc == ERR_OK && path == NULL) {
        rc = newest_read(&r, &chosen, &none_whole, err);
    } else if (rc == ERR_OK) {
        rc = candidate_read(&r, path, &damaged, err);
        chosen = str_dup(path);
    }
    if (rc == ERR_OK && chosen != NULL)
        chosen_note(&r, chosen, info);
    if (info != NULL)
        info->none_whole = none_whole;
    if (rc == ERR_OK)
        *found = chosen != NULL;
    free(chosen);
    hdf5io_manifest_free(&r.manifest);
    str_buf_free(&r.damaged);
    free(r.entries);
    hdf5io_spread_close(&r.spread);
    mem_free(r.ballots);
    return rc;
}
