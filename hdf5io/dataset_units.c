/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Divides the shards of a dataset into units: rows of chunks of the field with
 * the most bytes; where it has no chunks, and for streams, about 4 MiB, but at
 * most 1/1024 of all samples, so that small data sets are mixed well, too. */
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"

/* Where nothing else says so, a unit has this many bytes: enough for a storage
 * system to read it at full speed. */
#define UNITS_BYTES ((size_t)4 << 20)
/* The least number of units in a data set without chunks. */
#define UNITS_LEAST 1024

/* Samples per unit of a shard with these columns, if chunks do not say it. */
static int64_t units_rows(const hdf5io_dataset_t *dataset,
                          const hdf5io_column_t *columns, int count)
{
    const int64_t most = dataset->samples / UNITS_LEAST;
    size_t bytes = 1;
    int64_t rows;

    for (int k = 0; k < count; k++)
        bytes += columns[k].row_bytes;
    rows = (int64_t)(UNITS_BYTES / bytes);
    rows = rows < most ? rows : most;
    return rows > 1 ? rows : 1;
}

/* Samples of a stream need not begin where chunks begin, so each unit may touch
 * one chunk more than it fills. So units of a stream are long. */
int64_t hdf5io_dataset_unit_of(const hdf5io_dataset_t *dataset,
                               const hdf5io_shard_t *shard)
{
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);
    const hdf5io_column_t *large = &columns[0];
    int64_t rows;

    for (int k = 1; k < shard->count; k++)
        if (columns[k].row_bytes > large->row_bytes)
            large = &columns[k];
    if (large->band > 0 && large->stream == 0)
        return large->band;
    rows = units_rows(dataset, columns, shard->count);
    return rows > large->band ? rows : large->band;
}

void hdf5io_dataset_unit_rows(const hdf5io_dataset_t *dataset, int64_t *rows)
{
    for (int s = 0; s < dataset->count; s++)
        rows[s] = hdf5io_dataset_unit_of(dataset, &dataset->shards[s]);
}

err_code_t hdf5io_dataset_units(const hdf5io_dataset_t *dataset,
                                const int64_t *rows, hdf5io_units_t **out,
                                err_t *err)
{
    hdf5io_span_t *spans = NULL;
    err_code_t rc =
        mem_new(hdf5io_span_t, (size_t)dataset->count, "units", &spans, err);

    if (rc != ERR_OK)
        return rc;
    for (int s = 0; s < dataset->count; s++)
        spans[s] = (hdf5io_span_t){.samples = dataset->shards[s].rows,
                                   .unit = rows[s]};
    rc = hdf5io_units_open(spans, dataset->count, out, err);
    mem_free(spans);
    return rc;
}
