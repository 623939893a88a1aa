/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One rank reads an epoch by a loader with N threads, as in training, with the
 * defaults of data.lanes and data.prefetch. Each round opens the dataset anew,
 * outside of the measured time, so that it does not find chunks that the round
 * before has decoded.
 */
#include "cmd/bench_io_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/bench_io_disk.h"
#include "cmd/bench_io_file.h"
#include "cmd/bench_io_row.h"
#include "hdf5io/dataset.h"
#include "hdf5io/loader.h"

#define SHARE 64 /* samples of a batch for each thread */
#define LANES 64 /* the default of data.lanes */
/* The default of data.prefetch. More threads read more batches ahead. */
#define PREFETCH 4
/* What data.memory is by default where the job has 16 GiB for a rank. */
#define KEPT ((size_t)1 << 30)
#define SEED 1

typedef struct reader {
    const bench_io_args_t *args;
    bench_io_layout_t layout;
    crew_t *crew;
    char *path;
    int64_t rows, file_bytes;
    size_t row_bytes;
    hdf5io_units_t *units;     /* NULL: in file order */
    bench_io_span_t *spans;    /* [threads] */
    bench_io_chunks_t *chunks; /* gzip only */
    hdf5io_dataset_t *dataset; /* of this round */
    bool check, cold;          /* compare all values; drop the page cache */
} reader_t;

/* A reader of samples in float16, and a reader of the same samples in
 * float32. */
typedef struct pair {
    reader_t half, whole;
} pair_t;

/* ---- plan ---------------------------------------------------------------- */

static err_code_t dataset_open(const reader_t *reader, hdf5io_dataset_t **out,
                               err_t *err)
{
    char *paths[] = {reader->path};
    const opt_texts_t shards = {.count = 1, .items = paths};
    const hdf5io_field_t x = {.path = (char *)"/x", .scale = 1};
    const hdf5io_field_t y = {.path = (char *)"/y", .scale = 1};
    const hdf5io_dataset_config_t config = {
        .shards = &shards,
        .cache_bytes = KEPT,
        .inputs[0] = {.field = &x, .elems = BENCH_IO_ELEMS, .shape = "[4096]"},
        .targets[0] = {.field = &y,
                       .as = HDF5IO_AS_CLASSES,
                       .limit = reader->rows,
                       .elems = 1}};

    return hdf5io_dataset_open(&config, out, err);
}

/* The order in which all samples are read. */
static err_code_t sampler_open(const reader_t *reader, hdf5io_sampler_t **out,
                               err_t *err)
{
    const hdf5io_sampler_config_t config = {
        .samples = reader->rows,
        .batch = (int64_t)SHARE * reader->args->threads,
        .size = 1,
        .shuffle =
            reader->units == NULL ? HDF5IO_SHUFFLE_NONE : HDF5IO_SHUFFLE_CHUNK,
        .seed = SEED,
        .order = HDF5IO_ORDER_NEWEST,
        .lanes = LANES,
        .units = reader->units};

    return hdf5io_sampler_open(&config, out, err);
}

static err_code_t units_make(reader_t *reader, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    int64_t unit;
    err_code_t rc;

    if (reader->layout == BENCH_IO_ORDERED)
        return ERR_OK;
    rc = dataset_open(reader, &dataset, err);
    if (rc == ERR_OK) {
        hdf5io_dataset_unit_rows(dataset, &unit);
        rc = hdf5io_dataset_units(dataset, &unit, &reader->units, err);
    }
    hdf5io_dataset_close(dataset);
    return rc;
}

/* ---- a round ------------------------------------------------------------- */

static err_code_t batch_check(const hdf5io_batch_t *batch, err_t *err)
{
    const int64_t *y = batch->target;

    for (int64_t k = 0; k < batch->count; k++) {
        const int64_t row = (int64_t)batch->sample_ids[k];
        const float *x = (const float *)batch->input + k * BENCH_IO_ELEMS;

        if (y[k] != row)
            return err_set(err, ERR_DATA, "row %lld of /y is %lld",
                           (long long)row, (long long)y[k]);
        for (int64_t i = 0; i < BENCH_IO_ELEMS; i++)
            if (x[i] != bench_io_value(row, i))
                return err_set(err, ERR_DATA,
                               "number %lld of row %lld of /x is %g, expected "
                               "%g",
                               (long long)i, (long long)row, (double)x[i],
                               (double)bench_io_value(row, i));
    }
    return ERR_OK;
}

/* Read all batches of an epoch. */
static err_code_t epoch_read(const reader_t *reader, hdf5io_sampler_t *sampler,
                             err_t *err)
{
    const int threads = reader->args->threads;
    const hdf5io_loader_config_t config = {
        .dataset = reader->dataset,
        .sampler = sampler,
        .prefetch = threads > PREFETCH ? threads : PREFETCH,
        .threads = threads,
        .epochs = 1};
    hdf5io_loader_t *loader = NULL;
    hdf5io_batch_t *batch = NULL;
    err_code_t rc = hdf5io_loader_open(&config, &loader, err);

    do {
        if (rc == ERR_OK)
            rc = hdf5io_loader_next(loader, &batch, err);
        if (rc == ERR_OK && batch != NULL && reader->check)
            rc = batch_check(batch, err);
    } while (rc == ERR_OK && batch != NULL);
    hdf5io_loader_close(loader);
    return rc;
}

/* Each byte must have been read once. */
static err_code_t round_check(const reader_t *reader, err_t *err)
{
    const int64_t expected = reader->rows * (int64_t)reader->row_bytes;
    const int64_t found = hdf5io_dataset_bytes_read(reader->dataset);

    if (found == expected)
        return ERR_OK;
    return err_set(err, ERR_DATA, "%lld bytes of samples were read, not %lld",
                   (long long)found, (long long)expected);
}

static err_code_t cache_drop(const reader_t *reader, double *stays, err_t *err)
{
    *stays = 0;
    return reader->cold ? bench_io_drop(reader->path, stays, err) : ERR_OK;
}

static err_code_t round_ours(void *context, double *seconds, err_t *err)
{
    reader_t *reader = context;
    hdf5io_sampler_t *sampler = NULL;
    double begin, stays;
    err_code_t rc = dataset_open(reader, &reader->dataset, err);

    if (rc == ERR_OK)
        rc = sampler_open(reader, &sampler, err);
    if (rc == ERR_OK)
        rc = cache_drop(reader, &stays, err);
    if (rc == ERR_OK) {
        begin = clock_now();
        rc = epoch_read(reader, sampler, err);
        *seconds = clock_now() - begin;
    }
    if (rc == ERR_OK)
        rc = round_check(reader, err);
    hdf5io_sampler_close(sampler);
    hdf5io_dataset_close(reader->dataset);
    reader->dataset = NULL;
    return rc;
}

static err_code_t round_pread(void *context, double *seconds, err_t *err)
{
    const reader_t *reader = context;
    double stays;
    err_code_t rc = cache_drop(reader, &stays, err);

    if (rc == ERR_OK)
        rc = bench_io_spans_read(reader->crew, reader->spans,
                                 reader->args->threads, seconds, err);
    /* the file has a few bytes beside the samples */
    if (rc == ERR_OK)
        *seconds *= (double)reader->rows * (double)reader->row_bytes /
                    (double)reader->file_bytes;
    return rc;
}

static err_code_t round_inflate(void *context, double *seconds, err_t *err)
{
    const reader_t *reader = context;
    double bytes_s;
    err_code_t rc = bench_io_chunks_inflate(reader->chunks, &bytes_s, err);

    if (rc == ERR_OK)
        *seconds = (double)reader->rows * (double)reader->row_bytes / bytes_s /
                   reader->args->threads;
    return rc;
}

/* ---- a reader ------------------------------------------------------------ */

static err_code_t reader_open(reader_t *reader, err_t *err)
{
    const bench_io_layout_t layout = reader->layout;
    const size_t threads = (size_t)reader->args->threads;
    struct stat status;
    err_code_t rc =
        mem_new(bench_io_span_t, threads, "threads", &reader->spans, err);

    if (rc == ERR_OK)
        rc = bench_io_file_write(reader->path, layout, reader->rows, err);
    if (rc == ERR_OK && stat(reader->path, &status) != 0)
        rc = err_set(err, ERR_IO, "%s: %s", reader->path, strerror(errno));
    if (rc != ERR_OK)
        return rc;
    reader->file_bytes = status.st_size;
    bench_io_spans_cut(reader->path, reader->file_bytes, reader->spans,
                       reader->args->threads);
    if (layout == BENCH_IO_GZIP)
        rc = bench_io_chunks_open(reader->path, reader->rows, &reader->chunks,
                                  err);
    return rc == ERR_OK ? units_make(reader, err) : rc;
}

static void reader_close(reader_t *reader)
{
    hdf5io_units_close(reader->units);
    bench_io_chunks_close(reader->chunks);
    mem_free(reader->spans);
    unlink(reader->path);
    free(reader->path);
}

/* Measure [row] warm, and then cold, if that is possible. *cold tells the
 * rounds which of the two is measured. */
static err_code_t row_measure(const reader_t *reader, bench_io_row_t *row,
                              bool *cold, err_t *err)
{
    double stays = 0;
    err_code_t rc = bench_io_row_run(reader->args, row, err);

    if (rc == ERR_OK)
        rc = bench_io_drop(reader->path, &stays, err);
    if (rc != ERR_OK || !bench_io_dropped(reader->path, stays))
        return rc;
    *cold = true;
    row->cache = "cold";
    return bench_io_row_run(reader->args, row, err);
}

/* Read all samples once and compare them. */
static err_code_t values_check(reader_t *reader, err_t *err)
{
    double seconds;
    err_code_t rc;

    reader->check = true;
    rc = round_ours(reader, &seconds, err);
    reader->check = false;
    return rc;
}

static err_code_t rows_run(reader_t *reader, err_t *err)
{
    const bool gzip = reader->layout == BENCH_IO_GZIP;
    bench_io_row_t row = {.layout = bench_io_layout_name(reader->layout),
                          .cache = "warm",
                          .limit = gzip ? "zlib" : "pread",
                          .bytes = (size_t)reader->rows * reader->row_bytes,
                          .context = reader,
                          .ours = round_ours,
                          .limit_of = gzip ? round_inflate : round_pread};
    const err_code_t rc = values_check(reader, err);

    return rc == ERR_OK ? row_measure(reader, &row, &reader->cold, err) : rc;
}

/* ---- float16 ------------------------------------------------------------- */

static err_code_t round_half(void *context, double *seconds, err_t *err)
{
    pair_t *pair = context;

    return round_ours(&pair->half, seconds, err);
}

/* The time in which as many bytes of float32 are read. */
static err_code_t round_whole(void *context, double *seconds, err_t *err)
{
    pair_t *pair = context;
    err_code_t rc;

    pair->whole.cold = pair->half.cold;
    rc = round_ours(&pair->whole, seconds, err);
    if (rc == ERR_OK)
        *seconds *=
            (double)pair->half.row_bytes / (double)pair->whole.row_bytes;
    return rc;
}

static err_code_t pair_run(pair_t *pair, err_t *err)
{
    bench_io_row_t row = {.layout = bench_io_layout_name(BENCH_IO_FLOAT16),
                          .cache = "warm",
                          .limit = "float32",
                          .bytes =
                              (size_t)pair->half.rows * pair->half.row_bytes,
                          .context = pair,
                          .ours = round_half,
                          .limit_of = round_whole};
    err_code_t rc = values_check(&pair->half, err);

    if (rc == ERR_OK)
        rc = values_check(&pair->whole, err);
    return rc == ERR_OK ? row_measure(&pair->half, &row, &pair->half.cold, err)
                        : rc;
}

/* ---- all ----------------------------------------------------------------- */

static reader_t reader_make(const bench_io_args_t *args,
                            bench_io_layout_t layout, const char *directory,
                            crew_t *crew)
{
    return (reader_t){
        .args = args,
        .layout = layout,
        .crew = crew,
        .path = str_printf("%s/%s.h5", directory, bench_io_layout_name(layout)),
        .rows = (int64_t)(args->bytes / (BENCH_IO_ELEMS * sizeof(float))),
        .row_bytes = bench_io_row_bytes(layout)};
}

static err_code_t half_read(const bench_io_args_t *args, const char *directory,
                            crew_t *crew, err_t *err)
{
    pair_t pair = {.half = reader_make(args, BENCH_IO_FLOAT16, directory, crew),
                   .whole =
                       reader_make(args, BENCH_IO_CONTIGUOUS, directory, crew)};
    err_code_t rc = reader_open(&pair.half, err);

    if (rc == ERR_OK)
        rc = reader_open(&pair.whole, err);
    if (rc == ERR_OK)
        rc = pair_run(&pair, err);
    reader_close(&pair.whole);
    reader_close(&pair.half);
    return rc;
}

err_code_t bench_io_read(const bench_io_args_t *args, bench_io_layout_t layout,
                         const char *directory, crew_t *crew, err_t *err)
{
    reader_t reader;
    err_code_t rc;

    if (layout == BENCH_IO_FLOAT16)
        return half_read(args, directory, crew, err);
    reader = reader_make(args, layout, directory, crew);
    rc = reader_open(&reader, err);
    if (rc == ERR_OK)
        rc = rows_run(&reader, err);
    reader_close(&reader);
    return rc;
}
