/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading samples by global index. The requested samples are sorted, so that
 * neighbours become one request, a chunk is decoded once, and offsets on the
 * disk ascend. Each row is then converted to its place in the output:
 *
 *     entries (index, slot), sorted -> per shard -> per column -> blocks that
 *     fit the stage -> runs -> stage -> convert -> fields[column][slot]
 *
 * Rows that are delivered as they are stored are read directly into the output.
 *
 * With MPI-IO the ranks first exchange which shards any of them needs. For
 * these shards each rank takes part in the reads of every column, even after an
 * error of its own, which it reports at the end.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "hdf5io/dataset_row.h"
#include "hdf5io/dataset_scratch.h"
#include "hdf5io/dataset_whole.h"

/* One call of hdf5io_dataset_read. */
typedef struct read_call {
    hdf5io_dataset_t *dataset;
    read_scratch_t *scratch;
    hdf5io_shard_t *shard;
    const hdf5io_column_t *columns; /* of the shard, closed */
    void *const *fields;
    int64_t count; /* samples */
    const hdf5io_draw_t *draw;
    bool whole; /* check what a crop leaves out, too */
} read_call_t;

/* Consecutive sorted entries of one shard that are read together. */
typedef struct read_block {
    const read_entry_t *entries;
    int64_t count; /* of [entries], with duplicates */
    int64_t runs, rows;
} read_block_t;

/* Make the next block from the first [entries]: up to [rows_max] different
 * rows, or all if [rows_max] is 0. Fills the runs. */
static read_block_t read_block_cut(const read_call_t *call,
                                   const read_entry_t *entries, int64_t count,
                                   int64_t rows_max)
{
    read_block_t block = {.entries = entries};
    column_run_t *runs = call->scratch->runs;
    int64_t i;

    for (i = 0; i < count; i++) {
        int64_t row = entries[i].index - call->shard->first;

        check(row >= 0 && row < call->shard->rows, "row %lld of %lld in %s",
              (long long)row, (long long)call->shard->rows, call->shard->path);
        if (i > 0 && entries[i].index == entries[i - 1].index)
            continue;
        if (rows_max > 0 && block.rows == rows_max)
            break;
        if (i > 0 && entries[i].index == entries[i - 1].index + 1)
            runs[block.runs - 1].count++;
        else
            runs[block.runs++] = (column_run_t){.row = row, .count = 1};
        block.rows++;
    }
    block.count = i;
    check(block.runs <= block.rows && block.rows <= call->scratch->room,
          "%lld runs of %lld rows, with room for %lld", (long long)block.runs,
          (long long)block.rows, (long long)call->scratch->room);
    return block;
}

/* Convert one stored row of column [k] into the output. */
static err_code_t read_place(const read_call_t *call, int k,
                             const read_entry_t *entry, const void *stored,
                             err_t *err)
{
    const dataset_row_t row = {.field = &call->dataset->fields[k],
                               .column = &call->columns[k],
                               .file = call->shard->path,
                               .number = entry->index - call->shard->first,
                               .sample = entry->index,
                               .draw = call->draw,
                               .stored = stored,
                               .out = call->fields[k],
                               .slot = entry->slot};
    err_code_t rc = ERR_OK;

    check(entry->slot >= 0 && entry->slot < call->count, "sample %lld of %lld",
          (long long)entry->slot, (long long)call->count);
    if (call->whole)
        rc = hdf5io_dataset_row_whole(call->dataset, k, &row, err);
    return rc == ERR_OK ? hdf5io_dataset_row(&row, err) : rc;
}

/* Read [rows] and count them; [different] of them are different rows. */
static err_code_t read_rows(dataset_rows_t *rows, int64_t different, err_t *err)
{
    hdf5io_dataset_t *dataset = rows->dataset;
    const hdf5io_column_t *column =
        &hdf5io_dataset_columns(dataset, rows->shard)[rows->column];
    const int64_t bytes = different * (int64_t)column->row_bytes;
    const bool banded = dataset->banded[rows->column];
    const err_code_t rc = banded ? hdf5io_dataset_band_rows(rows, err)
                                 : hdf5io_dataset_rows(rows, err);

    if (rc != ERR_OK)
        return rc;
    atomic_fetch_add(&dataset->bytes_read, bytes);
    /* The pool counts the bytes that are read into it. */
    if (!banded && !hdf5io_way_decodes(column->way))
        atomic_fetch_add(&dataset->bytes_direct, bytes);
    return ERR_OK;
}

static err_code_t read_block(const read_call_t *call, int k,
                             const read_block_t *block, err_t *err)
{
    const hdf5io_column_t *column = &call->columns[k];
    const unsigned char *stored = call->scratch->stage;
    dataset_rows_t rows = {.dataset = call->dataset,
                           .shard = call->shard,
                           .column = k,
                           .runs = call->scratch->runs,
                           .count = block->runs,
                           .out = call->scratch->stage};
    trace_t *trace = call->scratch->trace;
    double begin = trace_begin(trace);
    err_code_t rc;

    check((size_t)block->rows * column->row_bytes <= call->scratch->stage_bytes,
          "%lld rows of %zu bytes in a stage of %zu", (long long)block->rows,
          column->row_bytes, call->scratch->stage_bytes);
    rc = read_rows(&rows, block->rows, err);
    trace_end(trace, begin, "read", "data", TRACE_NO_NUMBER);
    if (rc != ERR_OK)
        return rc;
    begin = trace_begin(trace);
    for (int64_t i = 0; i < block->count && rc == ERR_OK; i++) {
        const read_entry_t *entry = &block->entries[i];

        if (i > 0 && entry->index != entry[-1].index)
            stored += column->row_bytes;
        rc = read_place(call, k, entry, stored, err);
    }
    trace_end(trace, begin, "convert", "data", TRACE_NO_NUMBER);
    return rc;
}

/* Make runs of rows that are neighbours in the file and in the output. Returns
 * the number of runs; *rows becomes the number of different rows. */
static int64_t read_runs_cut(const read_call_t *call,
                             const read_entry_t *entries, int64_t count,
                             int64_t *rows)
{
    read_scratch_t *scratch = call->scratch;
    int64_t runs = 0;

    *rows = 0;
    for (int64_t i = 0; i < count; i++) {
        const read_entry_t *entry = &entries[i];

        if (i > 0 && entry->index == entry[-1].index)
            continue;
        if (i > 0 && entry->index == entry[-1].index + 1 &&
            entry->slot ==
                scratch->slots[runs - 1] + scratch->runs[runs - 1].count) {
            scratch->runs[runs - 1].count++;
        } else {
            scratch->runs[runs] = (column_run_t){
                .row = entry->index - call->shard->first, .count = 1};
            scratch->slots[runs++] = entry->slot;
        }
        ++*rows;
    }
    return runs;
}

/* Read all entries of one shard and column directly to their places in the
 * output, since they are delivered as they are stored. */
static err_code_t read_straight(const read_call_t *call, int k,
                                const read_entry_t *entries, int64_t count,
                                err_t *err)
{
    const hdf5io_column_t *column = &call->columns[k];
    unsigned char *out = call->fields[k];
    trace_t *trace = call->scratch->trace;
    const double begin = trace_begin(trace);
    dataset_rows_t rows = {.dataset = call->dataset,
                           .shard = call->shard,
                           .column = k,
                           .runs = call->scratch->runs,
                           .slots = call->scratch->slots,
                           .out = out};
    int64_t different;
    err_code_t rc;

    rows.count = read_runs_cut(call, entries, count, &different);
    rc = read_rows(&rows, different, err);
    for (int64_t i = 1; i < count && rc == ERR_OK; i++)
        if (entries[i].index == entries[i - 1].index)
            memcpy(out + (size_t)entries[i].slot * column->row_bytes,
                   out + (size_t)entries[i - 1].slot * column->row_bytes,
                   column->row_bytes);
    trace_end(trace, begin, "read", "data", TRACE_NO_NUMBER);
    return rc;
}

/* Read all entries of one shard and column: block by block, or with MPI-IO at
 * once. */
static err_code_t read_column(const read_call_t *call, int k,
                              const read_entry_t *entries, int64_t count,
                              err_t *err)
{
    const hdf5io_column_t *column = &call->columns[k];
    int64_t rows_max =
        (int64_t)(call->scratch->stage_bytes / column->row_bytes);
    err_code_t rc = ERR_OK;
    read_block_t block;

    if (call->dataset->mpi != NULL) {
        block = read_block_cut(call, entries, count, 0);
        rc = hdf5io_read_stage_grow(
            call->scratch, (size_t)block.rows * column->row_bytes, err);
        return rc == ERR_OK ? read_block(call, k, &block, err) : rc;
    }
    if (hdf5io_dataset_row_same(&call->dataset->fields[k], column))
        return read_straight(call, k, entries, count, err);
    while (count > 0 && rc == ERR_OK) {
        block = read_block_cut(call, entries, count, rows_max);
        rc = read_block(call, k, &block, err);
        entries += block.count;
        count -= block.count;
    }
    return rc;
}

static err_code_t read_shard(read_call_t *call, hdf5io_shard_t *shard,
                             const read_entry_t *entries, int64_t count,
                             err_t *err)
{
    err_code_t rc = ERR_OK;

    call->shard = shard;
    call->columns = hdf5io_dataset_columns(call->dataset, shard);
    /* not shard->count: another thread may be reopening this shard */
    for (int k = 0; k < call->dataset->field_count; k++) {
        err_t second = ERR_INIT;

        if (call->fields[k] == NULL && call->dataset->mpi == NULL)
            continue;
        if (rc == ERR_OK)
            rc = read_column(call, k, entries, count, err);
        else if (call->dataset->mpi != NULL)
            read_column(call, k, entries, count, &second);
    }
    return rc;
}

/* MPI-IO: find the shards that any rank needs. Collective. */
static err_code_t read_touched(const read_call_t *call, int64_t count,
                               err_t *err)
{
    const hdf5io_dataset_t *dataset = call->dataset;
    const read_entry_t *entries = call->scratch->entries;
    int64_t i = 0;

    for (int s = 0; s < dataset->count; s++) {
        const hdf5io_shard_t *shard = &dataset->shards[s];
        const int64_t begin = i;

        while (i < count && entries[i].index < shard->first + shard->rows)
            i++;
        dataset->touched[s] = i > begin;
    }
    return h5mpi_any(dataset->mpi, dataset->touched, dataset->count, err);
}

/* Read the entries shard by shard. */
static err_code_t read_shards(read_call_t *call, int64_t count, err_t *err)
{
    const hdf5io_dataset_t *dataset = call->dataset;
    const read_entry_t *entries = call->scratch->entries;
    err_code_t first = ERR_OK, rc;
    int64_t i = 0, begin;

    if (dataset->mpi != NULL)
        first = read_touched(call, count, err);
    if (first != ERR_OK)
        return first;
    for (int s = 0; s < dataset->count; s++) {
        hdf5io_shard_t *shard = &dataset->shards[s];
        err_t own = ERR_INIT;

        begin = i;
        while (i < count && entries[i].index < shard->first + shard->rows)
            i++;
        if (i == begin && dataset->mpi == NULL) {
            if (i == count)
                break;
            continue;
        }
        if (dataset->mpi != NULL && dataset->touched[s] == 0)
            continue;
        atomic_fetch_add(&call->dataset->shards_read, 1);
        rc = read_shard(call, shard, entries + begin, i - begin, &own);
        if (rc == ERR_OK)
            continue;
        if (first == ERR_OK)
            first = err_copy(err, &own);
        if (dataset->mpi == NULL)
            break;
    }
    check(first != ERR_OK || i == count,
          "%lld of %lld entries belong to a shard", (long long)i,
          (long long)count);
    return first;
}

static err_code_t samples_read(read_call_t *call, const int64_t *index,
                               err_t *err)
{
    hdf5io_dataset_t *dataset = call->dataset;
    const int64_t count = call->count;
    double begin;
    err_code_t rc;

    rc = hdf5io_read_scratch_take(dataset, count, &call->scratch, err);
    if (rc != ERR_OK)
        return rc;
    begin = trace_begin(call->scratch->trace);
    for (int64_t i = 0; i < count && rc == ERR_OK; i++) {
        call->scratch->entries[i] = (read_entry_t){index[i], i};
        if (index[i] < 0 || index[i] >= dataset->samples)
            rc = err_set(err, ERR_DATA,
                         "sample %" PRId64 " was asked for, the dataset has "
                         "%" PRId64,
                         index[i], dataset->samples);
    }
    if (rc == ERR_OK) {
        hdf5io_read_sort(call->scratch->entries, count);
        rc = read_shards(call, count, err);
    } else if (dataset->mpi != NULL) {
        /* The other ranks wait for this rank in their reads. */
        read_shards(call, 0, NULL);
    }
    trace_end(call->scratch->trace, begin, "batch", "data", TRACE_NO_NUMBER);
    hdf5io_read_scratch_give(dataset, call->scratch);
    return rc;
}

err_code_t hdf5io_dataset_read_drawn(hdf5io_dataset_t *dataset,
                                     const hdf5io_draw_t *draw,
                                     const int64_t *index, int64_t count,
                                     void *const *fields, err_t *err)
{
    read_call_t call = {
        .dataset = dataset, .fields = fields, .count = count, .draw = draw};

    return samples_read(&call, index, err);
}

err_code_t hdf5io_dataset_read_whole(hdf5io_dataset_t *dataset,
                                     const int64_t *index, int64_t count,
                                     void *const *fields, err_t *err)
{
    read_call_t call = {
        .dataset = dataset, .fields = fields, .count = count, .whole = true};

    return samples_read(&call, index, err);
}

err_code_t hdf5io_dataset_read_fields(hdf5io_dataset_t *dataset,
                                      const int64_t *index, int64_t count,
                                      void *const *fields, err_t *err)
{
    return hdf5io_dataset_read_drawn(dataset, NULL, index, count, fields, err);
}

err_code_t hdf5io_dataset_read(hdf5io_dataset_t *dataset, const int64_t *index,
                               int64_t count, void *input, void *target,
                               err_t *err)
{
    void *const fields[DATASET_FIELDS_MAX] = {input, target};

    check(dataset->field_count == 2, "%d fields", dataset->field_count);
    return hdf5io_dataset_read_fields(dataset, index, count, fields, err);
}
