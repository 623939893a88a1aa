/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/dataset_tell.h"

#include <string.h>

#include "base/mem.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/dataset_scratch.h"
#include "hdf5io/filter.h"

/* Bytes of all chunks of a column with [rows] rows; UINT64_MAX if they cannot
 * be counted. */
static uint64_t chunks_bytes(const hdf5io_column_t *column, int64_t rows)
{
    const uint64_t band = (uint64_t)column->band;
    uint64_t bytes = column->row_bytes;

    if (band == 0 || rows == 0 || column->way == HDF5IO_WAY_ROWS)
        return 0;
    if (__builtin_mul_overflow(bytes, band, &bytes) ||
        __builtin_mul_overflow(bytes, ((uint64_t)rows - 1) / band + 1, &bytes))
        return UINT64_MAX;
    return bytes;
}

uint64_t hdf5io_dataset_stages(const hdf5io_dataset_t *dataset, int reads)
{
    return (uint64_t)reads * (uint64_t)hdf5io_read_stage_bytes(dataset);
}

uint64_t hdf5io_dataset_chunks_most(const hdf5io_dataset_t *dataset)
{
    const uint64_t bound = hdf5io_pool_bound(dataset->pool);
    uint64_t all = 0;

    for (int s = 0; s < dataset->count; s++) {
        const hdf5io_shard_t *shard = &dataset->shards[s];
        const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);

        for (int k = 0; k < dataset->field_count; k++) {
            const uint64_t bytes =
                dataset->banded[k]
                    ? (uint64_t)shard->rows * columns[k].row_bytes
                    : chunks_bytes(&columns[k], shard->rows);

            if (__builtin_add_overflow(all, bytes, &all))
                return bound;
        }
    }
    return all < bound ? all : bound;
}

/* Bytes of buffers for the chunks of a column that a unit of [rows] samples
 * touches, as if a row of chunks were one chunk. A sample of a stream may be in
 * two chunks. UINT64_MAX: they cannot be counted. */
static uint64_t unit_bytes(const hdf5io_column_t *column, int64_t rows)
{
    const uint64_t band = (uint64_t)column->band;
    uint64_t bytes = column->row_bytes, bands;

    if (band == 0 || rows == 0 || column->way == HDF5IO_WAY_ROWS)
        return 0;
    if (__builtin_mul_overflow(bytes, band, &bytes) || bytes > SIZE_MAX / 2)
        return UINT64_MAX;
    bands = ((uint64_t)rows - 1) / band + 1;
    if ((uint64_t)rows % band != 0 || column->stream > 0)
        bands++;
    bytes = mem_round(hdf5io_filter_room((size_t)bytes));
    return __builtin_mul_overflow(bytes, bands, &bytes) ? UINT64_MAX : bytes;
}

/* Bytes of buffers for all rows of [shard] that are read in bands. These bytes
 * are known to fit into the pool. */
static uint64_t bands_bytes(const hdf5io_dataset_t *dataset,
                            const hdf5io_shard_t *shard)
{
    uint64_t bytes = 0;

    for (int k = 0; k < dataset->field_count; k++)
        if (dataset->banded[k])
            bytes +=
                mem_round((size_t)shard->rows *
                          hdf5io_dataset_columns(dataset, shard)[k].row_bytes);
    return bytes;
}

uint64_t hdf5io_dataset_units_most(const hdf5io_dataset_t *dataset,
                                   int64_t units)
{
    uint64_t most = 0, bands = 0;

    if (units == 0)
        return 0;
    for (int s = 0; s < dataset->count; s++) {
        const hdf5io_shard_t *shard = &dataset->shards[s];
        const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);
        const int64_t unit = hdf5io_dataset_unit_of(dataset, shard);
        const int64_t rows = unit < shard->rows ? unit : shard->rows;
        uint64_t bytes = 0;

        for (int k = 0; k < dataset->field_count; k++)
            if (__builtin_add_overflow(bytes, unit_bytes(&columns[k], rows),
                                       &bytes))
                return UINT64_MAX;
        most = bytes > most ? bytes : most;
        bands += bands_bytes(dataset, shard);
    }
    if (most == 0)
        return 0;
    /* and a buffer for stored bytes */
    if (__builtin_mul_overflow(most, (uint64_t)units + 1, &most) ||
        __builtin_add_overflow(most, bands, &most))
        return UINT64_MAX;
    return most;
}

uint64_t hdf5io_dataset_chunks_bound(const hdf5io_dataset_t *dataset)
{
    return hdf5io_pool_bound(dataset->pool);
}

const char *hdf5io_dataset_path(const hdf5io_dataset_t *dataset, int field)
{
    return dataset->fields[field].path;
}

void hdf5io_dataset_ways(const hdf5io_dataset_t *dataset, int field,
                         int counts[HDF5IO_WAYS])
{
    memset(counts, 0, HDF5IO_WAYS * sizeof *counts);
    for (int s = 0; s < dataset->count; s++) {
        const hdf5io_shard_t *shard = &dataset->shards[s];

        if (shard->rows > 0)
            counts[hdf5io_dataset_columns(dataset, shard)[field].way]++;
    }
}

void hdf5io_dataset_transform_say(const hdf5io_dataset_t *dataset, int field,
                                  str_buf_t *out)
{
    str_buf_t text = {0};

    if (dataset->fields[field].as == HDF5IO_AS_REALS)
        hdf5io_transform_say(&dataset->fields[field].transform, &text);
    if (text.length > 0)
        str_buf_add(out, "; the model gets %s", text.text);
    str_buf_free(&text);
    hdf5io_transform_moves_say(&dataset->fields[field].transform, &text);
    if (text.length > 0)
        str_buf_add(out, "; %s", text.text);
    str_buf_free(&text);
}

hdf5io_reads_t hdf5io_dataset_reads(const hdf5io_dataset_t *dataset)
{
    hdf5io_reads_t reads = {.retries = atomic_load(&dataset->retries)};

    hdf5io_pool_counts(dataset->pool, &reads.bytes, &reads.decode_s);
    reads.bytes += atomic_load(&dataset->bytes_direct);
    return reads;
}
