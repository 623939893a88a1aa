/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Counts the bytes that all ranks together read in an epoch. Each rank has the
 * memory that `cddp-train --check` says it needs. CDDP_LONG=1 tests all numbers
 * of ranks from 1 to 16. With --verbose the test prints what it counted;
 * docs/benchmarks/io.md has a record.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdlib.h>
#include <string.h>

#include "chunk_files.h"
#include "files.h"
#include "hdf5io/dataset_tell.h"
#include "hdf5io/loader.h"
#include "lib/io_count.h"

enum { ROWS = 8192, BATCH = 256, LANES = 64, MOST = 16 };

static char *directory;

static void start(void)
{
    directory = files_make();
}

static void stop(void)
{
    files_remove(directory);
}

TestSuite(epoch_reads, .init = start, .fini = stop, .timeout = 600);

/* What all ranks of one test share. */
typedef struct plan {
    const chunk_file_t *file;
    int size;
    hdf5io_shuffle_t shuffle;
    int prefetch;
    unsigned char seen[ROWS]; /* how often each sample came */
} plan_t;

static int64_t rows_of(const plan_t *plan)
{
    return (int64_t)plan->file->dims[0];
}

static hdf5io_sampler_t *sampler_of(const plan_t *plan, int rank,
                                    const hdf5io_units_t *units)
{
    const hdf5io_sampler_config_t config = {.samples = rows_of(plan),
                                            .batch = BATCH,
                                            .rank = rank,
                                            .size = plan->size,
                                            .shuffle = plan->shuffle,
                                            .seed = 3,
                                            .order = HDF5IO_ORDER_NEWEST,
                                            .lanes = LANES,
                                            .units = units};
    hdf5io_sampler_t *sampler = NULL;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, NULL), ERR_OK);
    return sampler;
}

static hdf5io_units_t *units_of(hdf5io_dataset_t *dataset)
{
    hdf5io_units_t *units = NULL;
    int64_t rows;

    hdf5io_dataset_unit_rows(dataset, &rows);
    cr_assert_eq(hdf5io_dataset_units(dataset, &rows, &units, NULL), ERR_OK);
    return units;
}

/* The memory that a rank needs; 0, which is the default, for data without
 * chunks. */
static size_t memory_of(const plan_t *plan, int rank)
{
    hdf5io_dataset_t *dataset =
        chunk_open(directory, "a.h5", plan->file, 0, false);
    hdf5io_units_t *units = units_of(dataset);
    hdf5io_sampler_t *sampler = sampler_of(plan, rank, units);
    const uint64_t need =
        hdf5io_dataset_units_most(dataset, hdf5io_sampler_units_used(sampler));

    hdf5io_sampler_close(sampler);
    hdf5io_units_close(units);
    hdf5io_dataset_close(dataset);
    return (size_t)need;
}

/* Read the first epoch of one rank; returns the bytes that were read. */
static long rank_read(plan_t *plan, int rank)
{
    hdf5io_dataset_t *dataset =
        chunk_open(directory, "a.h5", plan->file, memory_of(plan, rank), false);
    hdf5io_units_t *units = units_of(dataset);
    hdf5io_sampler_t *sampler = sampler_of(plan, rank, units);
    const hdf5io_loader_config_t config = {.dataset = dataset,
                                           .sampler = sampler,
                                           .prefetch = plan->prefetch,
                                           .epochs = 1};
    hdf5io_loader_t *loader = NULL;
    hdf5io_batch_t *batch;
    err_t err = ERR_INIT;
    long bytes;

    io_count_begin(".h5");
    cr_assert_eq(hdf5io_loader_open(&config, &loader, &err), ERR_OK, "%s",
                 err.text);
    do {
        cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK, "%s",
                     err.text);
        for (int64_t i = 0; batch != NULL && i < batch->count; i++) {
            const uint64_t id = batch->sample_ids[i];

            cr_assert_eq(((float *)batch->target)[i], (float)id);
            plan->seen[id]++;
        }
    } while (batch != NULL);
    hdf5io_loader_close(loader);
    bytes = io_count_bytes();
    cr_assert_eq(bytes, (long)hdf5io_dataset_reads(dataset).bytes);
    hdf5io_sampler_close(sampler);
    hdf5io_units_close(units);
    hdf5io_dataset_close(dataset);
    return bytes;
}

/* Bytes of the stored numbers of both datasets. */
static long stored(void)
{
    char *path = files_path(directory, "a.h5");
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t x = H5Dopen2(file, "/x", H5P_DEFAULT);
    hid_t y = H5Dopen2(file, "/y", H5P_DEFAULT);
    const hsize_t bytes = H5Dget_storage_size(x) + H5Dget_storage_size(y);

    H5Dclose(y);
    H5Dclose(x);
    H5Fclose(file);
    free(path);
    return (long)bytes;
}

static void check_epoch(plan_t *plan, const char *what, double most)
{
    double read = 0;

    memset(plan->seen, 0, sizeof plan->seen);
    for (int rank = 0; rank < plan->size; rank++)
        read += (double)rank_read(plan, rank);
    for (int64_t i = 0; i < rows_of(plan); i++)
        cr_assert_eq(plan->seen[i], 1, "sample %d comes %d times", (int)i,
                     plan->seen[i]);
    read /= (double)stored();
    cr_log_info("%s, %d ranks: each byte is read %.3f times", what, plan->size,
                read);
    cr_assert_leq(read, most, "%s, %d ranks: %g", what, plan->size, read);
}

/* Does this run check [size] ranks? */
static int takes(int size)
{
    static const char some[] = {1, 4, 7, 16, 0};

    return getenv("CDDP_LONG") != NULL || strchr(some, size) != NULL;
}

static void check_file(const chunk_file_t *file, const char *what,
                       double shared, double other)
{
    plan_t plan = {.file = file, .shuffle = HDF5IO_SHUFFLE_CHUNK};

    chunk_write(directory, "a.h5", file);
    for (plan.size = 1; plan.size <= MOST; plan.size++) {
        plan.prefetch = plan.size % 2 == 0 ? 4 : 0;
        if (takes(plan.size))
            check_epoch(&plan, what, LANES % plan.size == 0 ? shared : other);
    }
}

/* The file has 1024 chunks. */
Test(epoch_reads, of_compressed_chunks)
{
    const chunk_file_t file = {.ndim = 2,
                               .dims = {ROWS, 64},
                               .chunk = {8, 64},
                               .type = H5T_IEEE_F32LE,
                               .filters = CHUNK_SHUFFLE | CHUNK_DEFLATE};

    check_file(&file, "gzip", 1.1, 1.25);
}

/* The size of the chunks divides neither the data nor the lanes. */
Test(epoch_reads, of_uneven_chunks)
{
    const chunk_file_t file = {.ndim = 2,
                               .dims = {ROWS, 64},
                               .chunk = {9, 64},
                               .type = H5T_IEEE_F32LE,
                               .filters = CHUNK_DEFLATE};

    check_file(&file, "uneven", 1.1, 1.25);
}

/* Each rank reads nearly all of the labels, as they are short. The labels are a
 * small part of the bytes. */
Test(epoch_reads, of_contiguous_data)
{
    const chunk_file_t file = {
        .ndim = 2, .dims = {ROWS / 4, 1024}, .type = H5T_IEEE_F32LE};

    check_file(&file, "contiguous, 4 KiB", 1.1, 1.1);
}

/* Samples of less than 4 KiB are read in whole units, as chunks are. */
Test(epoch_reads, of_short_contiguous_samples)
{
    const chunk_file_t file = {
        .ndim = 2, .dims = {ROWS / 2, 256}, .type = H5T_IEEE_F32LE};

    check_file(&file, "contiguous, 1 KiB", 1.1, 1.25);
}
