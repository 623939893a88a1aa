/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading a node set. All ranks exchange which sets their nodes have, and try
 * them, newest first. For each set, the ranks of a node together compare the
 * hashes of all parts on this node, before any tensor changes. Then all ranks
 * know which node has an intact copy of which part. They choose a reader for
 * each part, and load the set like any checkpoint, each rank from its own node.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_load.h"
#include "hdf5io/checkpoint_model.h"
#include "hdf5io/nodeset.h"

/* The largest number of sets of a node that are tried. A node has at most two
 * sets, and one more if the run was killed. */
#define NAMES_MOST 4

/* What a rank has found of a part on its node: no copy, an intact one, or a
 * damaged one. */
typedef enum part_state { PART_NONE, PART_GOOD, PART_BAD } part_state_t;

typedef struct names {
    hdf5io_nodeset_name_t list[NAMES_MOST]; /* newest first; nonce 0: none */
} names_t;

typedef struct reader {
    const hdf5io_nodeset_t *set;
    const hdf5io_votes_t *votes;
    const hdf5io_tensor_t *tensors;
    int tensor_count;
    bool trusted; /* the home on this rank's node is this user's */
    hdf5io_io_t io;
    hdf5io_spread_t spread;
    hdf5io_ballot_t *ballots; /* [size] */
    /* Of the set that is tried: */
    hdf5io_nodeset_name_t name;
    char *directory; /* on this rank's node */
    int teller;
    hdf5io_manifest_t manifest;
    int *wanted;    /* [tensor_count of the manifest] */
    char *states;   /* [size * file_count]: part_state_t, as each rank found */
    int *readers;   /* [file_count] */
    uint64_t *load; /* [size]: bytes that each rank is to read */
} reader_t;

/* ---- which sets there are ------------------------------------------------ */

/* Is [a] newer than [b]? */
static bool newer(hdf5io_nodeset_name_t a, hdf5io_nodeset_name_t b)
{
    if (a.nonce == 0 || b.nonce == 0)
        return a.nonce != 0;
    return a.step != b.step ? a.step > b.step : a.nonce > b.nonce;
}

static void name_insert(names_t *names, hdf5io_nodeset_name_t name)
{
    for (int i = 0; i < NAMES_MOST; i++) {
        const hdf5io_nodeset_name_t old = names->list[i];

        if (old.nonce == name.nonce && old.step == name.step)
            return;
        if (!newer(name, old))
            continue;
        names->list[i] = name;
        name = old;
    }
}

/* List the sets of step [least] or later on this rank's node. A home that
 * cannot be read has no sets. */
static void names_list(const reader_t *r, int64_t least, names_t *out)
{
    DIR *dir = r->trusted ? opendir(r->set->home) : NULL;
    const struct dirent *entry;
    hdf5io_nodeset_name_t name;

    *out = (names_t){0};
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (hdf5io_nodeset_parse(entry->d_name, &name) && name.nonce != 0 &&
            name.step >= least)
            name_insert(out, name);
    if (dir != NULL)
        closedir(dir);
}

/* The sets of all nodes, newest first. */
static err_code_t names_gather(const reader_t *r, int64_t least, names_t *out,
                               err_t *err)
{
    names_t mine, *all = NULL;
    err_t memory = ERR_INIT;
    err_code_t rc;

    mem_new(names_t, (size_t)r->votes->size, "local checkpoints", &all,
            &memory);
    rc = hdf5io_vote(r->votes, &memory, NULL, NULL, NULL, err);
    names_list(r, least, &mine);
    if (rc == ERR_OK)
        rc =
            r->votes->exchange(r->votes->context, &mine, sizeof mine, all, err);
    *out = (names_t){0};
    for (int k = 0; rc == ERR_OK && k < r->votes->size; k++)
        for (int i = 0; i < NAMES_MOST && all[k].list[i].nonce != 0; i++)
            name_insert(out, all[k].list[i]);
    mem_free(all);
    return rc;
}

/* NOLINTBEGIN(clang-analyzer-core.*): votes have checked what is allocated. */
/* ---- the manifest -------------------------------------------------------- */

/* Rank 0 says why the set is not used. */
static void refuse_say(const reader_t *r, const char *why)
{
    if (r->votes->rank == 0)
        log_warn("hdf5io", "the local checkpoint of step %lld is not used: %s",
                 (long long)r->name.step, why);
}

/* Read the manifest on this rank's node. False: there is no intact one. */
static bool text_read(const reader_t *r, char **text, size_t *bytes)
{
    hdf5io_manifest_t m = {0};
    retry_cause_t cause;
    uint64_t hash;
    err_t err = ERR_INIT;
    bool good;

    if (!r->trusted || hdf5io_checkpoint_text(&r->io, r->directory, text, bytes,
                                              &cause, &err) != ERR_OK)
        return false;
    good = hdf5io_checkpoint_parse(r->directory, *text, *bytes, &m, &hash,
                                   &err) == ERR_OK &&
           m.progress.step == r->name.step && m.block_bytes > 0;
    hdf5io_manifest_free(&m);
    return good;
}

/* Send [text], which the teller has, to all ranks. */
static err_code_t text_tell(reader_t *r, const char *text, size_t bytes,
                            err_t *err)
{
    const size_t size = (size_t)r->votes->size;
    const size_t room = (bytes + HDF5IO_SPREAD_ALIGN) / HDF5IO_SPREAD_ALIGN *
                        HDF5IO_SPREAD_ALIGN;
    char *all = NULL;
    size_t *cuts = NULL;
    err_t mine = ERR_INIT;
    uint64_t hash;
    err_code_t rc;

    if (mem_new(char, room, "a manifest", &all, &mine) == ERR_OK)
        mem_new(size_t, size + 1, "a manifest", &cuts, &mine);
    rc = hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
    for (size_t k = 0; rc == ERR_OK && k <= size; k++)
        cuts[k] = k > (size_t)r->teller ? room : 0;
    if (rc == ERR_OK && r->votes->rank == r->teller)
        memcpy(all, text, bytes);
    if (rc == ERR_OK)
        rc = hdf5io_spread_ranges(&r->spread, all, cuts, err);
    if (rc == ERR_OK) {
        hdf5io_checkpoint_parse(r->directory, all, bytes, &r->manifest, &hash,
                                &mine);
        rc = hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
    }
    mem_free(cuts);
    mem_free(all);
    return rc;
}

/* Get the manifest on all ranks. *usable is false if no node has it. */
static err_code_t manifest_get(reader_t *r, bool *usable, err_t *err)
{
    const err_t none = ERR_INIT;
    uint64_t numbers[VOTE_NUMBERS] = {0};
    char *text = NULL;
    size_t bytes = 0;
    err_code_t rc;

    hdf5io_manifest_free(&r->manifest);
    if (text_read(r, &text, &bytes))
        numbers[0] = bytes;
    rc = hdf5io_vote(r->votes, &none, numbers, r->ballots, NULL, err);
    r->teller = -1;
    for (int k = r->votes->size - 1; rc == ERR_OK && k >= 0; k--)
        if (r->ballots[k].numbers[0] > 0)
            r->teller = k;
    *usable = r->teller >= 0;
    if (rc == ERR_OK && *usable)
        rc = text_tell(r, text, (size_t)r->ballots[r->teller].numbers[0], err);
    else if (rc == ERR_OK)
        refuse_say(r, "no node has an intact manifest of it");
    free(text);
    return rc;
}

/* ---- the parts ----------------------------------------------------------- */

/* Compare the hash of part number [file] on this rank's node. */
static part_state_t part_check(const reader_t *r, int file)
{
    const hdf5io_manifest_file_t *part = &r->manifest.files[file];
    char *path = str_printf("%s/%s", r->directory, part->name);
    hdf5io_sums_t sums = {0};
    retry_cause_t cause = RETRY_STORAGE;
    part_state_t state = PART_BAD;
    hdf5io_io_file_t open;
    err_t err = ERR_INIT;

    if (hdf5io_io_file_open(&r->io, path, &open, &cause, &err) != ERR_OK) {
        state = cause == RETRY_ABSENT ? PART_NONE : PART_BAD;
    } else {
        const bool sized = open.size == part->bytes;

        hdf5io_io_file_close(&open);
        if (sized &&
            hdf5io_io_hash(&r->io, path, &sums, &cause, &err) == ERR_OK &&
            sums.hash == part->hash)
            state = PART_GOOD;
    }
    free(path);
    return state;
}

/* Check this rank's share of the parts that its node may have, and exchange
 * what all ranks have found. */
static err_code_t parts_check(reader_t *r, err_t *err)
{
    const size_t files = (size_t)r->manifest.file_count;
    const size_t size = (size_t)r->votes->size;
    int count;
    const int place = hdf5io_nodeset_place(r->set, r->votes->rank, &count);
    char *mine = NULL;
    err_t memory = ERR_INIT;
    err_code_t rc;

    mem_free(r->states);
    mem_free(r->readers);
    r->states = NULL;
    r->readers = NULL;
    if (mem_new(char, files, "local checkpoints", &mine, &memory) == ERR_OK &&
        mem_new(char, files *size, "local checkpoints", &r->states, &memory) ==
            ERR_OK)
        mem_new(int, files, "local checkpoints", &r->readers, &memory);
    rc = hdf5io_vote(r->votes, &memory, NULL, NULL, NULL, err);
    for (size_t f = 0; rc == ERR_OK && r->trusted && f < files; f++)
        if (f % (size_t)count == (size_t)place)
            mine[f] = (char)part_check(r, (int)f);
    if (rc == ERR_OK)
        rc = r->votes->exchange(r->votes->context, mine, files, r->states, err);
    mem_free(mine);
    return rc;
}

/* The rank with the fewest bytes to read among the ranks of all nodes that have
 * an intact copy of part number [file]; -1: there is no such node. */
static int reader_of(const reader_t *r, int file)
{
    const int size = r->votes->size, files = r->manifest.file_count;
    int best = -1;

    for (int k = 0; k < size; k++) {
        if (r->states[(size_t)k * (size_t)files + (size_t)file] != PART_GOOD)
            continue;
        for (int q = 0; q < size; q++)
            if (r->set->nodes[q] == r->set->nodes[k] &&
                (best < 0 || r->load[q] < r->load[best]))
                best = q;
    }
    return best;
}

/* Rank 0 says which copies are damaged. */
static void damage_say(const reader_t *r)
{
    const size_t files = (size_t)r->manifest.file_count;

    if (r->votes->rank != 0)
        return;
    for (size_t i = 0; i < files * (size_t)r->votes->size; i++)
        if (r->states[i] == PART_BAD)
            log_warn("hdf5io",
                     "the local checkpoint of step %lld: %s is damaged on the "
                     "node of rank %d, and not used",
                     (long long)r->name.step, r->manifest.files[i % files].name,
                     (int)(i / files));
}

/* Choose who reads which part. *usable is false if no node has an intact copy
 * of some part. */
static void readers_choose(reader_t *r, bool *usable)
{
    hdf5io_manifest_t *m = &r->manifest;
    char why[160];

    damage_say(r);
    memset(r->load, 0, (size_t)r->votes->size * sizeof *r->load);
    *usable = true;
    for (int f = 0; f < m->file_count && *usable; f++) {
        r->readers[f] = reader_of(r, f);
        *usable = r->readers[f] >= 0;
        if (*usable)
            r->load[r->readers[f]] += m->files[f].bytes;
        snprintf(why, sizeof why, "no node has an intact copy of %s",
                 m->files[f].name);
    }
    if (!*usable)
        refuse_say(r, why);
}

/* Number the files so that the files of one reader are consecutive, as
 * hdf5io_load requires. */
static err_code_t files_sort(reader_t *r, err_t *err)
{
    hdf5io_manifest_t *m = &r->manifest;
    const size_t files = (size_t)m->file_count;
    hdf5io_manifest_file_t *sorted = NULL;
    int *number = NULL, *readers = NULL, next = 0;
    err_code_t rc =
        mem_new(hdf5io_manifest_file_t, files, "a manifest", &sorted, err);

    if (rc == ERR_OK)
        rc = mem_new(int, files, "a manifest", &number, err);
    if (rc == ERR_OK)
        rc = mem_new(int, files, "a manifest", &readers, err);
    for (int k = 0; rc == ERR_OK && k < r->votes->size; k++)
        for (size_t f = 0; f < files; f++) {
            if (r->readers[f] != k)
                continue;
            sorted[next] = m->files[f];
            readers[next] = k;
            number[f] = next++;
        }
    for (int i = 0; rc == ERR_OK && i < m->piece_count; i++)
        m->pieces[i].file = number[m->pieces[i].file];
    if (rc == ERR_OK) {
        memcpy(m->files, sorted, files * sizeof *sorted);
        memcpy(r->readers, readers, files * sizeof *readers);
    }
    mem_free(readers);
    mem_free(number);
    mem_free(sorted);
    return rc;
}

/* NOLINTEND(clang-analyzer-core.*) */

/* ---- one set ------------------------------------------------------------- */

/* Does the set belong to this model? The same on all ranks. */
static err_code_t model_check(reader_t *r, err_t *err)
{
    err_t mine = ERR_INIT;

    mem_free(r->wanted);
    r->wanted = NULL;
    if (mem_new(int, (size_t)r->manifest.tensor_count, "reading a checkpoint",
                &r->wanted, &mine) == ERR_OK)
        hdf5io_model_compare(r->set->checkpoint, &r->manifest, r->directory,
                             r->tensors, r->tensor_count, r->wanted, &mine);
    return hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
}

static err_code_t tensors_load(reader_t *r, err_t *err)
{
    const hdf5io_load_t load = {.saved = {&r->io, r->directory, &r->manifest},
                                .spread = &r->spread,
                                .window = r->set->checkpoint->window_bytes,
                                .ballots = r->ballots,
                                .tensors = r->tensors,
                                .wanted = r->wanted,
                                .readers = r->readers};
    bool damaged;
    err_t mine = ERR_INIT;
    err_code_t rc;

    files_sort(r, &mine);
    rc = hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
    if (rc == ERR_OK)
        rc = hdf5io_load(&load, &damaged, err);
    /* The tensors may have changed, so this start cannot try another set. The
     * next start compares all hashes again. */
    if (rc == ERR_DATA)
        err->code = rc = ERR_IO;
    return rc;
}

/* Try the set r->name. *usable is false if it is not whole. */
static err_code_t set_read(reader_t *r, bool *usable, err_t *err)
{
    char name[HDF5IO_NODESET_NAME];
    err_code_t rc;

    hdf5io_nodeset_print(r->name, name);
    free(r->directory);
    r->directory = str_printf("%s/%s", r->set->home, name);
    rc = manifest_get(r, usable, err);
    if (rc != ERR_OK || !*usable)
        return rc;
    rc = model_check(r, err);
    if (rc == ERR_OK)
        rc = parts_check(r, err);
    if (rc == ERR_OK)
        readers_choose(r, usable);
    return rc == ERR_OK && *usable ? tensors_load(r, err) : rc;
}

static err_code_t reader_open(reader_t *r, err_t *err)
{
    const size_t size = (size_t)r->votes->size;
    err_t mine = ERR_INIT;
    err_code_t rc = mem_new(hdf5io_ballot_t, size, "a vote", &r->ballots, err);

    if (rc != ERR_OK)
        return rc;
    if (hdf5io_spread_open(r->votes, &r->spread, &mine) == ERR_OK)
        mem_new(uint64_t, size, "local checkpoints", &r->load, &mine);
    return hdf5io_vote(r->votes, &mine, NULL, NULL, NULL, err);
}

static void reader_close(reader_t *r)
{
    hdf5io_manifest_free(&r->manifest);
    hdf5io_spread_close(&r->spread);
    free(r->directory);
    mem_free(r->wanted);
    mem_free(r->states);
    mem_free(r->readers);
    mem_free(r->load);
    mem_free(r->ballots);
}

static void found_fill(const reader_t *r, hdf5io_nodeset_found_t *out,
                       hdf5io_checkpoint_info_t *info)
{
    if (r->votes->rank == 0)
        hdf5io_model_warn(r->set->checkpoint, &r->manifest, r->directory);
    *out = (hdf5io_nodeset_found_t){true, r->teller, r->name.nonce};
    snprintf(info->path, sizeof info->path, "%s", r->directory);
    info->progress = r->manifest.progress;
    info->world_size = r->manifest.world_size;
    info->bytes_written = 0;
}

err_code_t hdf5io_nodeset_read(const hdf5io_nodeset_t *set, int64_t least,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_nodeset_found_t *out,
                               hdf5io_checkpoint_info_t *info, err_t *err)
{
    reader_t r = {.set = set,
                  .votes = set->checkpoint->votes,
                  .tensors = tensors,
                  .tensor_count = count,
                  .trusted = hdf5io_nodeset_own(set->home),
                  .io = hdf5io_io_of(set->checkpoint)};
    bool usable = false;
    names_t names;
    err_code_t rc;

    *out = (hdf5io_nodeset_found_t){.teller = -1};
    r.io.retry_seconds = 0;
    rc = reader_open(&r, err);
    if (rc == ERR_OK)
        rc = names_gather(&r, least, &names, err);
    for (int i = 0; rc == ERR_OK && !usable && i < NAMES_MOST; i++) {
        if (names.list[i].nonce == 0)
            break;
        r.name = names.list[i];
        rc = set_read(&r, &usable, err);
    }
    if (rc == ERR_OK && usable)
        found_fill(&r, out, info);
    reader_close(&r);
    return rc;
}
