/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The comparison takes two rounds, and a third one if the shapes differ. First
 * all ranks exchange cards: a hash of all shapes, and a hash that identifies
 * the files that the rank sees. Then the data is hashed in units (a unit is a
 * field of a shard). Ranks that see the same files divide the units among
 * themselves. One sum over ranks brings the hashes of rank 0's files to all
 * ranks: for each unit one rank adds the hash and the others add 0. Every rank
 * compares its own units with them.
 */
#include "train/same.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/digest.h"
#include "train/view.h"

#define SAME_LOG_SECONDS 10.0

/* What the ranks exchange first. */
typedef struct card {
    uint64_t place; /* hash of host, mounts and files */
    uint64_t shape; /* hash of the shapes of all shards */
    int64_t shards, samples;
} card_t;

/* A shard of rank 0; sent to all ranks if their cards differ. */
typedef struct entry {
    char name[104]; /* file name, cut off if too long, padded with zeros */
    uint64_t shape;
    int64_t samples;
} entry_t;

/* The state of a comparison. */
typedef struct look {
    const train_same_t *same;
    hdf5io_dataset_t *dataset;
    card_t card, first; /* this rank's and rank 0's */
    /* This rank's index among the ranks that see the same files; their
     * number. */
    int member, members;
    int shards, fields; /* a unit has the number shard * fields + field */
    double logged;      /* clock instant of the last line about progress */
    /* Bytes read so far by this rank; bytes that it has to read. */
    int64_t bytes, total;
} look_t;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* ---- the cards ----------------------------------------------------------- */

static card_t card_of(const look_t *look)
{
    const uint64_t view = train_view(look->same->group);
    const uint64_t files = hdf5io_dataset_place(look->dataset);
    hash_state_t *place = hash_state_open(), *shape = hash_state_open();
    card_t card = {.shards = look->shards,
                   .samples = hdf5io_dataset_samples(look->dataset)};

    hash_state_add(place, &view, sizeof view);
    hash_state_add(place, &files, sizeof files);
    for (int s = 0; s < look->shards; s++) {
        const uint64_t one = hdf5io_dataset_shape(look->dataset, s);

        hash_state_add(shape, &one, sizeof one);
    }
    card.place = hash_state_value(place);
    card.shape = hash_state_value(shape);
    hash_state_free(shape);
    hash_state_free(place);
    return card;
}

/* Exchange cards. Set *alike if all ranks have the shapes of rank 0. */
static err_code_t cards_exchange(look_t *look, bool *alike, err_t *err)
{
    comm_group_t *group = look->same->group;
    const int rank = comm_group_rank(group), size = comm_group_size(group);
    card_t *cards = NULL;
    err_code_t rc;

    look->card = card_of(look);
    rc = mem_new(card_t, (size_t)size, "comparing data", &cards, err);
    if (rc == ERR_OK)
        rc = comm_allgather(group, &look->card, sizeof look->card, cards, err);
    if (rc != ERR_OK)
        goto free;
    *alike = true;
    look->first = cards[0];
    look->member = look->members = 0;
    for (int r = 0; r < size; r++) {
        if (cards[r].shards != cards[0].shards ||
            cards[r].shape != cards[0].shape)
            *alike = false;
        if (cards[r].place != look->card.place)
            continue;
        look->member += r < rank ? 1 : 0;
        look->members++;
    }
free:
    mem_free(cards);
    return rc;
}

/* ---- different shapes ---------------------------------------------------- */

static void entries_fill(const look_t *look, entry_t *entries)
{
    for (int s = 0; s < look->shards; s++) {
        entry_t *entry = &entries[s];

        snprintf(entry->name, sizeof entry->name, "%s",
                 base_name(hdf5io_dataset_shard(look->dataset, s)));
        entry->shape = hdf5io_dataset_shape(look->dataset, s);
        entry->samples = hdf5io_dataset_shard_samples(look->dataset, s);
    }
}

/* Compare shard [s] with [there], rank 0's shard of that number (NULL: it has
 * none). */
static err_code_t entry_compare(const look_t *look, int s, const entry_t *there,
                                err_t *err)
{
    const char *what = look->same->what;
    const char *host = comm_group_host(look->same->group, 0);
    const char *path =
        s < look->shards ? hdf5io_dataset_shard(look->dataset, s) : NULL;
    const bool counts = look->card.shards != look->first.shards;

    if (counts &&
        (path == NULL || there == NULL ||
         strncmp(base_name(path), there->name, sizeof there->name - 1) != 0))
        return err_set(err, ERR_DATA,
                       "%s: %d shards are here, but %" PRId64
                       " on %s: number %d is %s here and %s there; all ranks "
                       "need the same files",
                       what, look->shards, look->first.shards, host, s + 1,
                       path == NULL ? "missing" : path,
                       there == NULL ? "missing" : there->name);
    if (path == NULL || there == NULL)
        return ERR_OK;
    if (hdf5io_dataset_shard_samples(look->dataset, s) != there->samples)
        return err_set(err, ERR_DATA,
                       "%s: %s holds %" PRId64 " samples here, but %" PRId64
                       " on %s: all ranks need the same data; copy it again",
                       what, path,
                       hdf5io_dataset_shard_samples(look->dataset, s),
                       there->samples, host);
    if (hdf5io_dataset_shape(look->dataset, s) != there->shape)
        return err_set(err, ERR_DATA,
                       "%s: the fields of %s have another shape or type here "
                       "than on %s: all ranks need the same data; copy it "
                       "again",
                       what, path, host);
    return ERR_OK;
}

/* Rank 0 sends a list of its shards. A rank with other shards fails and names
 * the first one that differs. */
static err_code_t shapes_compare(const look_t *look, err_t *err)
{
    const int there = (int)look->first.shards;
    const int most = there > look->shards ? there : look->shards;
    entry_t *entries = NULL;
    err_code_t rc;

    rc = mem_new(entry_t, (size_t)there, "comparing data", &entries, err);
    if (rc != ERR_OK)
        return rc;
    if (comm_group_rank(look->same->group) == 0)
        entries_fill(look, entries);
    rc = comm_broadcast(look->same->group, entries,
                        (size_t)there * sizeof *entries, 0, err);
    for (int s = 0; s < most && rc == ERR_OK; s++)
        rc = entry_compare(look, s, s < there ? &entries[s] : NULL, err);
    mem_free(entries);
    return rc;
}

/* ---- bytes --------------------------------------------------------------- */

static bool unit_mine(const look_t *look, int unit)
{
    return look->members <= 1 || unit % look->members == look->member;
}

static void look_alive(void *context, int64_t bytes)
{
    look_t *look = context;
    const train_same_t *same = look->same;
    const double now = clock_now();
    char done[32], total[32];

    look->bytes += bytes;
    if (same->alive != NULL)
        same->alive(same->context);
    if (comm_group_rank(same->group) != 0 ||
        now - look->logged < SAME_LOG_SECONDS)
        return;
    look->logged = now;
    log_info("train", "%s: rank 0 has read %s of its %s to compare", same->what,
             str_bytes((uint64_t)look->bytes, done, sizeof done),
             str_bytes((uint64_t)look->total, total, sizeof total));
}

/* Bytes of this rank's units. */
static int64_t total_of(const look_t *look)
{
    int64_t total = 0;

    for (int u = 0; u < look->shards * look->fields; u++)
        if (unit_mine(look, u))
            total +=
                hdf5io_dataset_shard_samples(look->dataset, u / look->fields) *
                (int64_t)hdf5io_dataset_row_bytes(look->dataset,
                                                  u % look->fields);
    return total;
}

/* Hash this rank's units into [mine]; the entries of other units stay 0. The
 * first entries are hashes of a sample of the bytes. If [rounds] is 2, hashes
 * of all bytes follow. */
static err_code_t units_hash(look_t *look, int rounds, uint64_t *mine,
                             err_t *err)
{
    const int units = look->shards * look->fields;
    err_code_t rc = ERR_OK;

    look->logged = clock_now();
    look->total = total_of(look);
    for (int i = 0; i < units * rounds && rc == ERR_OK; i++) {
        const int u = i % units;
        const hdf5io_digest_how_t how = {
            .full = i >= units, .alive = look_alive, .context = look};

        if (!unit_mine(look, u))
            continue;
        rc = hdf5io_dataset_digest(look->dataset, u / look->fields,
                                   u % look->fields, &how, &mine[i], err);
        if (!how.full && look->same->alive != NULL)
            look->same->alive(look->same->context);
    }
    return rc;
}

static err_code_t units_compare(const look_t *look, int rounds,
                                const uint64_t *mine, const uint64_t *first,
                                err_t *err)
{
    const int units = look->shards * look->fields;

    for (int i = 0; i < units * rounds; i++) {
        const int u = i % units;

        if (!unit_mine(look, u) || mine[i] == first[i])
            continue;
        return err_set(
            err, ERR_DATA,
            "%s: %s holds other numbers in %s here than on %s, with the "
            "same shape: all ranks need the same data; copy it again",
            look->same->what,
            hdf5io_dataset_shard(look->dataset, u / look->fields),
            hdf5io_dataset_field_path(look->dataset, u % look->fields),
            comm_group_host(look->same->group, 0));
    }
    return ERR_OK;
}

/* One hash for each shard, from the hashes of its fields in [units]. */
static err_code_t marks_fold(const look_t *look, const uint64_t *units,
                             uint64_t **out, err_t *err)
{
    uint64_t *marks = NULL;
    err_code_t rc = mem_new(uint64_t, (size_t)look->shards,
                            "hashes of the data", &marks, err);

    if (rc != ERR_OK)
        return rc;
    for (int s = 0; s < look->shards; s++) {
        const uint64_t shape = hdf5io_dataset_shape(look->dataset, s);
        hash_state_t *state = hash_state_open();

        hash_state_add(state, &shape, sizeof shape);
        hash_state_add(state, &units[s * look->fields],
                       (size_t)look->fields * sizeof *units);
        marks[s] = hash_state_value(state);
        hash_state_free(state);
    }
    *out = marks;
    return ERR_OK;
}

/* Make [out] from the hashes in [first]: those of a sample of the bytes and, if
 * [rounds] is 2, those of all bytes. */
static err_code_t marks_make(const look_t *look, int rounds,
                             const uint64_t *first, train_marks_t *out,
                             err_t *err)
{
    err_code_t rc = marks_fold(look, first, &out->quick, err);

    if (rc == ERR_OK && rounds > 1)
        rc = marks_fold(look,
                        first + (size_t)look->shards * (size_t)look->fields,
                        &out->full, err);
    return rc;
}

/* A rank with an error of its own still takes part in the sum. */
static err_code_t bytes_compare(look_t *look, train_marks_t *out, err_t *err)
{
    const int rounds = look->same->how == TRAIN_VALIDATE_FULL ? 2 : 1;
    const size_t count =
        (size_t)look->shards * (size_t)look->fields * (size_t)rounds;
    uint64_t *mine = NULL, *first = NULL;
    err_t own = ERR_INIT;
    err_code_t rc, found;

    rc = mem_new(uint64_t, 2 * count + 1, "comparing data", &mine, err);
    if (rc != ERR_OK)
        return rc;
    first = mine + count;
    found = units_hash(look, rounds, mine, &own);
    if (look->card.place == look->first.place)
        memcpy(first, mine, count * sizeof *mine);
    /* The last number counts the ranks that could not read their data. If there
     * are any, the sums are incomplete and cannot be compared with. */
    first[count] = found == ERR_OK ? 0 : 1;
    rc = comm_allreduce(look->same->group, first, count + 1, COMM_INT64,
                        COMM_SUM, err);
    if (rc == ERR_OK && found != ERR_OK)
        rc = err_copy(err, &own);
    if (rc == ERR_OK && first[count] == 0)
        rc = units_compare(look, rounds, mine, first, err);
    if (rc == ERR_OK)
        rc = marks_make(look, rounds, first, out, err);
    mem_free(mine);
    return rc;
}

err_code_t train_same(const train_same_t *same, hdf5io_dataset_t *dataset,
                      train_marks_t *out, err_t *err)
{
    look_t look = {.same = same,
                   .dataset = dataset,
                   .shards = hdf5io_dataset_shards(dataset),
                   .fields = hdf5io_dataset_inputs(dataset) +
                             hdf5io_dataset_targets(dataset)};
    train_marks_t marks = {.shards = look.shards};
    bool alike = false;
    err_code_t rc;

    rc = cards_exchange(&look, &alike, err);
    if (rc == ERR_OK && !alike)
        rc = shapes_compare(&look, err);
    if (rc == ERR_OK && alike && same->how != TRAIN_VALIDATE_NONE)
        rc = bytes_compare(&look, &marks, err);
    if (rc != ERR_OK) {
        train_marks_free(&marks);
        return rc;
    }
    *out = marks;
    return ERR_OK;
}

void train_marks_free(train_marks_t *marks)
{
    mem_free(marks->quick);
    mem_free(marks->full);
    *marks = (train_marks_t){0};
}
