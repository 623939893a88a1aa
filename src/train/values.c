/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/values.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/dataset_whole.h"

/* Bytes of the samples that are read at a time, and their largest number. */
#define READ_BYTES ((size_t)8 << 20)
#define READ_ROWS 65536
#define LOG_SECONDS 10.0

typedef struct sweep {
    const train_values_t *values;
    hdf5io_dataset_t *dataset;
    int inputs, count;  /* fields: the inputs, and all */
    int64_t begin, end; /* this rank's samples */
    int64_t rows;       /* read at a time; equal on all ranks */
    int64_t *index;     /* [rows] */
    void *fields[2 * HDF5IO_FIELDS_MAX]; /* NULL: it is not read */
    double logged; /* clock instant of the last line about progress */
} sweep_t;

/* Is field [k] checked? */
static bool checked(const sweep_t *sweep, int k)
{
    return k >= sweep->inputs || sweep->values->inputs;
}

/* Is field [k] read? Collective reads are those of all fields. */
static bool needed(const sweep_t *sweep, int k)
{
    return checked(sweep, k) || hdf5io_dataset_collective(sweep->dataset);
}

static int64_t part_begin(const sweep_t *sweep, int rank)
{
    return (int64_t)((__int128)hdf5io_dataset_samples(sweep->dataset) * rank /
                     sweep->values->size);
}

static int64_t rows_of(const sweep_t *sweep)
{
    size_t bytes = sizeof *sweep->index;

    for (int k = 0; k < sweep->count; k++)
        if (needed(sweep, k))
            bytes += hdf5io_dataset_field_bytes(sweep->dataset, k);
    if (bytes >= READ_BYTES)
        return 1;
    return READ_BYTES / bytes < READ_ROWS ? (int64_t)(READ_BYTES / bytes)
                                          : READ_ROWS;
}

static err_code_t room_make(sweep_t *sweep, err_t *err)
{
    const size_t rows = (size_t)sweep->rows;
    err_code_t rc = mem_new(int64_t, rows, "checking data", &sweep->index, err);

    for (int k = 0; k < sweep->count && rc == ERR_OK; k++)
        if (needed(sweep, k))
            rc = mem_alloc(rows * hdf5io_dataset_field_bytes(sweep->dataset, k),
                           "checking data", &sweep->fields[k], err);
    return rc;
}

static void room_free(sweep_t *sweep)
{
    for (int k = 0; k < sweep->count; k++)
        mem_free(sweep->fields[k]);
    mem_free(sweep->index);
}

static void progress_say(sweep_t *sweep, int64_t done)
{
    const train_values_t *values = sweep->values;
    const double now = clock_now();

    if (values->alive != NULL)
        values->alive(values->context);
    if (values->rank != 0 || now - sweep->logged < LOG_SECONDS)
        return;
    sweep->logged = now;
    log_info("train",
             "%s: rank 0 has checked %" PRId64 " of its %" PRId64 " samples",
             values->what, done, sweep->end - sweep->begin);
}

/* Read and check [count] samples from [first] on; 0: only take part. */
static err_code_t rows_check(const sweep_t *sweep, int64_t first, int64_t count,
                             err_t *err)
{
    const void *fields[2 * HDF5IO_FIELDS_MAX] = {NULL};
    err_code_t rc;

    for (int64_t i = 0; i < count; i++)
        sweep->index[i] = first + i;
    for (int k = 0; k < sweep->count; k++)
        fields[k] = checked(sweep, k) ? sweep->fields[k] : NULL;
    rc = hdf5io_dataset_read_whole(sweep->dataset, sweep->index, count,
                                   sweep->fields, err);
    return rc == ERR_OK ? hdf5io_dataset_finite(sweep->dataset,
                                                (const uint64_t *)sweep->index,
                                                count, fields, err)
                        : rc;
}

/* Check all samples of this rank, unless its error [rc] is in [err]. With
 * collective reads it takes part to the end even then. */
static err_code_t part_check(sweep_t *sweep, err_code_t rc, err_t *err)
{
    const bool collective = hdf5io_dataset_collective(sweep->dataset);
    const int64_t size = sweep->values->size;
    const int64_t most =
        (hdf5io_dataset_samples(sweep->dataset) + size - 1) / size;

    for (int64_t done = 0; done < most; done += sweep->rows) {
        const int64_t left = sweep->end - sweep->begin - done;
        int64_t count = left < sweep->rows ? left : sweep->rows;
        err_t own = ERR_INIT;

        if (count < 0 || rc != ERR_OK)
            count = 0;
        if (count == 0 && !collective)
            break;
        if (rows_check(sweep, sweep->begin + done, count, &own) != ERR_OK &&
            rc == ERR_OK)
            rc = err_copy(err, &own);
        progress_say(sweep, done + count);
    }
    return rc;
}

err_code_t train_values_check(const train_values_t *values,
                              hdf5io_dataset_t *dataset, err_t *err)
{
    sweep_t sweep = {.values = values,
                     .dataset = dataset,
                     .inputs = hdf5io_dataset_inputs(dataset),
                     .logged = clock_now()};
    err_code_t rc;

    sweep.count = sweep.inputs + hdf5io_dataset_targets(dataset);
    if (!values->inputs && sweep.count == sweep.inputs)
        return ERR_OK;
    sweep.begin = part_begin(&sweep, values->rank);
    sweep.end = part_begin(&sweep, values->rank + 1);
    sweep.rows = rows_of(&sweep);
    rc = part_check(&sweep, room_make(&sweep, err), err);
    room_free(&sweep);
    return rc;
}
