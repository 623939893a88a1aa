/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reading ahead of use: which bytes are read, how often, and of which reads the
 * system is told. This program defines its own pread. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "chunk_files.h"
#include "hdf5io/dataset_tell.h"
#include "hdf5io/filter.h"
#include "hdf5io/loader.h"
#include "lib/slow_storage.h"
#include "open.h"

/* global: reads wait until [together] reads have begun; 0: no read waits */
static atomic_int together, reading;

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    if (atomic_load(&together) > 0) {
        atomic_fetch_add(&reading, 1);
        while (atomic_load(&reading) < atomic_load(&together))
            sched_yield();
    }
    slow_read();
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

TestSuite(ahead, .init = open_start, .fini = open_stop, .timeout = 300);

/* One chunk for each sample. */
#define CHUNK_BYTES ((size_t)256)
static chunk_file_t chunked(hsize_t rows)
{
    return (chunk_file_t){.ndim = 2,
                          .dims = {rows, CHUNK_BYTES / 4},
                          .chunk = {1, CHUNK_BYTES / 4},
                          .type = H5T_IEEE_F32LE,
                          .filters = CHUNK_DEFLATE};
}

/* A loader and what it reads. */
typedef struct reader {
    hdf5io_dataset_t *dataset;
    hdf5io_units_t *units;
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
    int64_t samples;
} reader_t;

/* Write [file] and open it. [bound]: bytes of the pool; 0: the default. */
static reader_t reader_make(const chunk_file_t *file, size_t bound)
{
    reader_t reader = {.samples = (int64_t)file->dims[0]};
    int64_t rows;

    chunk_write(open_directory, "a.h5", file);
    reader.dataset = chunk_open(open_directory, "a.h5", file, bound, false);
    hdf5io_dataset_unit_rows(reader.dataset, &rows);
    cr_assert_eq(
        hdf5io_dataset_units(reader.dataset, &rows, &reader.units, NULL),
        ERR_OK);
    return reader;
}

/* Open the loader: one batch is read ahead for each thread. */
static void reader_start(reader_t *reader, hdf5io_shuffle_t shuffle,
                         int64_t batch, int threads)
{
    const hdf5io_sampler_config_t order = {.samples = reader->samples,
                                           .batch = batch,
                                           .size = 1,
                                           .shuffle = shuffle,
                                           .seed = 3,
                                           .order = HDF5IO_ORDER_NEWEST,
                                           .lanes = 4,
                                           .units = reader->units};
    hdf5io_loader_config_t config = {.dataset = reader->dataset,
                                     .prefetch = threads,
                                     .threads = threads,
                                     .epochs = 1};

    cr_assert_eq(hdf5io_sampler_open(&order, &reader->sampler, NULL), ERR_OK);
    config.sampler = reader->sampler;
    cr_assert_eq(hdf5io_loader_open(&config, &reader->loader, NULL), ERR_OK);
}

/* Read and check the next batch; false: there is none. */
static bool reader_next(reader_t *reader)
{
    hdf5io_batch_t *batch;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_loader_next(reader->loader, &batch, &err), ERR_OK, "%s",
                 err.text);
    for (int64_t i = 0; batch != NULL && i < batch->count; i++)
        cr_assert_eq(((float *)batch->target)[i], (float)batch->sample_ids[i]);
    return batch != NULL;
}

static void reader_close(reader_t *reader)
{
    hdf5io_loader_close(reader->loader);
    hdf5io_sampler_close(reader->sampler);
    hdf5io_units_close(reader->units);
    hdf5io_dataset_close(reader->dataset);
}

static int64_t bytes_read(const reader_t *reader)
{
    return hdf5io_dataset_reads(reader->dataset).bytes;
}

/* Stored bytes of /x and /y. */
static int64_t bytes_stored(void)
{
    static const char *const names[] = {"/x", "/y"};
    char *path = files_path(open_directory, "a.h5");
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    int64_t bytes = 0;

    for (int i = 0; i < 2; i++) {
        hid_t set = H5Dopen2(file, names[i], H5P_DEFAULT);

        bytes += (int64_t)H5Dget_storage_size(set);
        H5Dclose(set);
    }
    H5Fclose(file);
    free(path);
    return bytes;
}

/* Nobody takes a batch, so no buffer is free after the first batches. */
Test(ahead, chunks_of_later_batches_are_decoded_while_no_buffer_is_free)
{
    const chunk_file_t file = chunked(64);

    for (int threads = 1; threads <= 3; threads += 2) {
        reader_t reader = reader_make(&file, 0);
        const int64_t stored = bytes_stored();

        reader_start(&reader, HDF5IO_SHUFFLE_FULL, 4, threads);
        while (bytes_read(&reader) < stored)
            sched_yield();
        while (reader_next(&reader))
            ;
        cr_expect_eq(bytes_read(&reader), stored, "%d threads read %d of %d",
                     threads, (int)bytes_read(&reader), (int)stored);
        reader_close(&reader);
    }
}

/* Memory has room for a batch and two more chunks, for half of the chunks, or
 * for nearly all. */
Test(ahead, memory_is_bounded_and_chunks_are_decoded_once)
{
    const size_t room = mem_round(hdf5io_filter_room(CHUNK_BYTES));
    const chunk_file_t file = chunked(64);

    for (size_t rooms = 6; rooms <= 60; rooms += 27) {
        reader_t reader = reader_make(&file, rooms * room);
        const int64_t stored = bytes_stored();

        reader_start(&reader, HDF5IO_SHUFFLE_FULL, 4, 1);
        do
            cr_expect_leq(hdf5io_dataset_pooled(reader.dataset), rooms * room);
        while (reader_next(&reader));
        cr_expect_eq(bytes_read(&reader), stored, "%zu chunks in memory",
                     rooms);
        reader_close(&reader);
    }
}

/* All samples are one batch. If one thread read the batch alone, it would wait
 * for ever. */
Test(ahead, threads_decode_the_chunks_of_a_batch_together)
{
    const chunk_file_t file = chunked(32);
    reader_t reader = reader_make(&file, 0);

    atomic_store(&together, 2);
    reader_start(&reader, HDF5IO_SHUFFLE_NONE, 32, 2);
    cr_expect(reader_next(&reader));
    cr_expect_not(reader_next(&reader));
    reader_close(&reader);
}

/* Rows of 4 KiB without chunks. */
static chunk_file_t contiguous(hsize_t rows)
{
    return (chunk_file_t){
        .ndim = 2, .dims = {rows, 1024}, .type = H5T_IEEE_F32LE};
}

/* The first read takes long. Otherwise the system would be told of no read. */
Test(ahead, slow_storage_is_told_of_later_batches)
{
    const chunk_file_t file = contiguous(256);
    reader_t reader = reader_make(&file, 0);

    slow_length = 4096;
    atomic_store(&slow_next, true);
    reader_start(&reader, HDF5IO_SHUFFLE_FULL, 4, 1);
    while (atomic_load(&slow_count) < 100)
        sched_yield();
    while (reader_next(&reader))
        ;
    reader_close(&reader);
}

/* The first read takes long because its thread waits for a core, not because it
 * waits for storage. */
Test(ahead, the_system_is_told_of_no_read_from_the_page_cache)
{
    const chunk_file_t file = contiguous(256);
    reader_t reader = reader_make(&file, 0);

    slow_length = 4096;
    atomic_store(&slow_held, true);
    atomic_store(&slow_next, true);
    reader_start(&reader, HDF5IO_SHUFFLE_FULL, 4, 1);
    while (reader_next(&reader))
        ;
    cr_expect_eq(atomic_load(&slow_count), 0);
    cr_expect_not(atomic_load(&slow_next));
    reader_close(&reader);
}

/* Memory has room for the samples of 16 batches. */
Test(ahead, slow_storage_is_told_of_as_much_as_memory_holds)
{
    const chunk_file_t file = contiguous(256);
    reader_t reader = reader_make(&file, (size_t)64 * 4096);

    slow_length = 4096;
    atomic_store(&slow_next, true);
    reader_start(&reader, HDF5IO_SHUFFLE_FULL, 4, 1);
    while (atomic_load(&slow_count) < 60)
        sched_yield();
    /* The loader is at most two batches ahead of this thread. The system is
     * told of 16 batches more, and of the rest of the first batch. */
    for (int taken = 0; reader_next(&reader); taken++)
        cr_expect_leq(atomic_load(&slow_count), 3 + 4 * (taken + 1 + 2 + 16));
    reader_close(&reader);
}

/* 4096 samples are 1024 units of 4. */
Test(ahead, slow_storage_is_told_of_whole_units)
{
    const chunk_file_t file = contiguous(4096);
    reader_t reader = reader_make(&file, 0);

    slow_length = (off_t)4 * 4096;
    atomic_store(&slow_next, true);
    reader_start(&reader, HDF5IO_SHUFFLE_CHUNK, 16, 1);
    while (atomic_load(&slow_count) < 64)
        sched_yield();
    while (reader_next(&reader))
        ;
    /* The table of units of which the system was told may lose a few. */
    cr_expect_leq(atomic_load(&slow_count), 1100);
    reader_close(&reader);
}
