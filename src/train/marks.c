/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/marks.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/checkpoint_data.h"
#include "hdf5io/digest.h"

#define MARKS_ROWS_MAX 4096

/* Number of shards that share a row. */
static int row_shards(const train_marks_t *marks)
{
    return (marks->shards + MARKS_ROWS_MAX - 1) / MARKS_ROWS_MAX;
}

static int row_count(const train_data_t *data)
{
    if (data->dataset == NULL || data->marks.quick == NULL)
        return 0;
    return (data->marks.shards + row_shards(&data->marks) - 1) /
           row_shards(&data->marks);
}

/* One hash for [count] shards. A single shard keeps its own hash. */
static uint64_t row_hash(const uint64_t *hashes, int count)
{
    return count == 1 ? hashes[0]
                      : hash_bytes(hashes, (size_t)count * sizeof *hashes);
}

static void rows_add(const train_data_t *data, const char *split,
                     hdf5io_mark_t *rows)
{
    const train_marks_t *marks = &data->marks;
    const int step = row_shards(marks);

    for (int first = 0; first < marks->shards; first += step) {
        const int left = marks->shards - first;
        const int count = left < step ? left : step;
        const char *path = hdf5io_dataset_shard(data->dataset, first);
        const char *slash = strrchr(path, '/');
        hdf5io_mark_t *row = rows++;

        *row =
            (hdf5io_mark_t){.split = str_dup(split),
                            .name = str_dup(slash == NULL ? path : slash + 1),
                            .shards = count,
                            .quick = row_hash(marks->quick + first, count),
                            .whole = marks->full != NULL};
        if (marks->full != NULL)
            row->full = row_hash(marks->full + first, count);
        for (int s = first; s < first + count; s++)
            row->samples += hdf5io_dataset_shard_samples(data->dataset, s);
    }
}

err_code_t train_marks_list(const train_data_t *train,
                            const train_data_t *valid, hdf5io_mark_t **out,
                            int *count, err_t *err)
{
    const int first = row_count(train), second = row_count(valid);
    hdf5io_mark_t *rows = NULL;
    err_code_t rc = mem_new(hdf5io_mark_t, (size_t)first + (size_t)second,
                            "hashes of the data", &rows, err);

    if (rc != ERR_OK)
        return rc;
    if (first > 0)
        rows_add(train, "train", rows);
    if (second > 0)
        rows_add(valid, "valid", rows + first);
    *out = rows;
    *count = first + second;
    return ERR_OK;
}

/* ---- then and now -------------------------------------------------------- */

/* The rows of one split, which are consecutive. */
typedef struct rows {
    const hdf5io_mark_t *rows;
    int count;
    long long shards, samples;
} rows_t;

static rows_t rows_of(const hdf5io_mark_t *marks, int count, const char *split)
{
    rows_t rows = {0};

    for (int i = 0; i < count; i++) {
        if (strcmp(marks[i].split, split) != 0)
            continue;
        if (rows.rows == NULL)
            rows.rows = &marks[i];
        rows.count++;
        rows.shards += marks[i].shards;
        rows.samples += marks[i].samples;
    }
    return rows;
}

static bool row_same(const hdf5io_mark_t *then, const hdf5io_mark_t *now)
{
    return then->samples == now->samples && then->quick == now->quick &&
           (!then->whole || !now->whole || then->full == now->full);
}

bool train_marks_same(const train_marks_pair_t *pair, const char *split,
                      char *say, size_t room)
{
    const rows_t then = rows_of(pair->then, pair->then_count, split);
    const rows_t now = rows_of(pair->now, pair->now_count, split);
    const char *was;
    int differ = 0, first = 0;

    if (then.count == 0 || now.count == 0)
        return true;
    if (then.shards != now.shards || then.count != now.count) {
        snprintf(say, room,
                 "data.%s: %lld samples in %lld shards are here, but %lld in "
                 "%lld when the checkpoint was written",
                 split, now.samples, now.shards, then.samples, then.shards);
        return false;
    }
    for (int i = now.count - 1; i >= 0; i--) {
        if (row_same(&then.rows[i], &now.rows[i]))
            continue;
        first = i;
        differ++;
    }
    if (differ == 0)
        return true;
    was = then.rows[first].name;
    snprintf(say, room,
             "data.%s: %d of %lld shards hold%s other samples than when the "
             "checkpoint was written, the first is %s%s%s%s",
             split, differ, now.shards, differ == 1 ? "s" : "",
             now.rows[first].name,
             strcmp(was, now.rows[first].name) == 0 ? "" : " (then ",
             strcmp(was, now.rows[first].name) == 0 ? "" : was,
             strcmp(was, now.rows[first].name) == 0 ? "" : ")");
    return false;
}
