/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reads short rows, for example labels. A read of a few bytes takes as long as
 * a read of some kilobytes. So bands of neighbouring rows are read into the
 * pool, and single rows are copied from there. This is done only for a field
 * whose rows all fit into a part of the pool: then each band is read once, in
 * any order of samples.
 */
#include <string.h>

#include "base/check.h"
#include "hdf5io/dataset_impl.h"

/* Rows of at least this many bytes are read by themselves. */
#define BAND_ROW_LEAST ((size_t)4096)
/* Rows of fewer bytes than this are read in bands of BAND_BYTES. Several ranks
 * read the same band then, which costs little. A band of longer rows is a unit
 * (units.h), so that a rank reads only its own units. */
#define BAND_ROW_SHORT ((size_t)64)
#define BAND_BYTES ((size_t)64 << 10)
/* All bands together take at most this part (1 / BAND_SHARE) of the pool. */
#define BAND_SHARE 8

/* Bytes of all rows of field [k], if it may be read in bands; else 0. */
static uint64_t band_total(const hdf5io_dataset_t *dataset, int k)
{
    uint64_t total = 0;

    for (int s = 0; s < dataset->count; s++) {
        const hdf5io_shard_t *shard = &dataset->shards[s];
        const hdf5io_column_t *column =
            &hdf5io_dataset_columns(dataset, shard)[k];

        if (shard->rows == 0)
            continue;
        if (column->way != HDF5IO_WAY_PREAD || column->stream > 0 ||
            column->row_bytes >= BAND_ROW_LEAST)
            return 0;
        total += (uint64_t)shard->rows * column->row_bytes;
    }
    return total;
}

void hdf5io_dataset_bands_choose(hdf5io_dataset_t *dataset)
{
    uint64_t left = hdf5io_pool_bound(dataset->pool) / BAND_SHARE;

    if (dataset->mpi != NULL)
        return;
    for (int k = 0; k < dataset->field_count; k++) {
        const uint64_t total = band_total(dataset, k);

        dataset->banded[k] = total > 0 && total <= left;
        if (dataset->banded[k])
            left -= total;
    }
}

/* The number of rows in a band of the column. */
static int64_t band_rows(const dataset_rows_t *rows, size_t row_bytes)
{
    return row_bytes < BAND_ROW_SHORT
               ? (int64_t)(BAND_BYTES / row_bytes)
               : hdf5io_dataset_unit_of(rows->dataset, rows->shard);
}

/* The band that was used last. */
typedef struct band {
    pool_extent_t *extent; /* NULL: none */
    int64_t number;
} band_t;

static void band_give(const dataset_rows_t *rows, band_t *band)
{
    if (band->extent != NULL)
        hdf5io_pool_give(rows->dataset->pool, band->extent, 0, SIZE_MAX);
    band->extent = NULL;
}

/* Take band [number], which has at most [per] rows. */
static err_code_t band_take(const dataset_rows_t *rows, int64_t number,
                            int64_t per, band_t *band, err_t *err)
{
    hdf5io_dataset_t *dataset = rows->dataset;
    const size_t row_bytes =
        hdf5io_dataset_columns(dataset, rows->shard)[rows->column].row_bytes;
    const uint64_t owner =
        hdf5io_dataset_owner(dataset, rows->shard, rows->column);
    const int64_t rest = rows->shard->rows - number * per;
    const column_run_t run = {number * per, rest < per ? rest : per};
    dataset_rows_t all = {.dataset = dataset,
                          .shard = rows->shard,
                          .column = rows->column,
                          .runs = &run,
                          .count = 1};
    bool fill;
    err_code_t rc;

    if (band->extent != NULL && band->number == number)
        return ERR_OK;
    band_give(rows, band);
    rc = hdf5io_pool_take(dataset->pool, owner, (uint64_t)number,
                          (size_t)run.count * row_bytes, &band->extent, &fill,
                          err);
    if (rc != ERR_OK || !fill) {
        band->number = number;
        return rc;
    }
    all.out = hdf5io_pool_bytes(band->extent);
    rc = hdf5io_dataset_rows(&all, err);
    hdf5io_pool_filled(dataset->pool, band->extent, rc == ERR_OK);
    hdf5io_pool_keep(dataset->pool, band->extent);
    if (rc == ERR_OK)
        hdf5io_pool_count(dataset->pool, (size_t)run.count * row_bytes, 0);
    band->number = number;
    return rc;
}

/* Copy the rows of [run] to [out]. */
static err_code_t band_copy(const dataset_rows_t *rows, const column_run_t *run,
                            unsigned char *out, band_t *band, err_t *err)
{
    const size_t row_bytes =
        hdf5io_dataset_columns(rows->dataset, rows->shard)[rows->column]
            .row_bytes;
    const int64_t per = band_rows(rows, row_bytes);
    const int64_t end = run->row + run->count;
    int64_t row = run->row;
    err_code_t rc = ERR_OK;

    while (row < end) {
        const int64_t within = row % per;
        const int64_t some =
            end - row < per - within ? end - row : per - within;

        rc = band_take(rows, row / per, per, band, err);
        if (rc != ERR_OK)
            return rc;
        memcpy(out,
               hdf5io_pool_bytes(band->extent) + (size_t)within * row_bytes,
               (size_t)some * row_bytes);
        out += (size_t)some * row_bytes;
        row += some;
    }
    return rc;
}

err_code_t hdf5io_dataset_band_rows(const dataset_rows_t *rows, err_t *err)
{
    const size_t row_bytes =
        hdf5io_dataset_columns(rows->dataset, rows->shard)[rows->column]
            .row_bytes;
    unsigned char *next = rows->out;
    band_t band = {.extent = NULL};
    err_code_t rc = ERR_OK;

    check(rows->dataset->banded[rows->column], "column %d has no bands",
          rows->column);
    for (int64_t i = 0; i < rows->count && rc == ERR_OK; i++) {
        if (rows->slots != NULL)
            next =
                (unsigned char *)rows->out + (size_t)rows->slots[i] * row_bytes;
        rc = band_copy(rows, &rows->runs[i], next, &band, err);
        next += (size_t)rows->runs[i].count * row_bytes;
    }
    band_give(rows, &band);
    return rc;
}
