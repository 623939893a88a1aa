/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Chunks that are read and decoded without HDF5's lock. Failing storage is
 * simulated: this program defines its own pread, which libhdf5 also calls. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chunk_files.h"
#include "files.h"
#include "hdf5io/chunks.h"
#include "hdf5io/dataset_tell.h"
#include "hdf5io/filter.h"
#include "hdf5io/h5.h"
#include "lib/slow_storage.h"

/* global: number of reads that fail with refusal_errno; those of this process
 * are few */
static atomic_int refusals;
static int refusal_errno;
static atomic_int preads;

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    if (atomic_load(&refusals) > 0 && atomic_fetch_sub(&refusals, 1) > 0) {
        errno = refusal_errno;
        return -1;
    }
    atomic_fetch_add(&preads, 1);
    slow_read();
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

static char *directory;

static void start(void)
{
    directory = files_make();
}

static void stop(void)
{
    files_remove(directory);
}

TestSuite(chunks, .init = start, .fini = stop, .timeout = 120);

/* Chunks that divide no dimension. */
static const chunk_file_t five = {
    .ndim = 5, .dims = {61, 5, 3, 7, 2}, .chunk = {8, 3, 3, 4, 2}};

/* Write and read; the bits must be right whatever the order. */
static void same_bits(const chunk_file_t *file, hdf5io_way_t way,
                      const char *what)
{
    const bool decoded = way == HDF5IO_WAY_CHUNKS || way == HDF5IO_WAY_MANY;
    hdf5io_dataset_t *dataset;
    int counts[HDF5IO_WAYS];

    chunk_write(directory, "a.h5", file);
    chunk_lzf_forget();
    dataset = chunk_open(directory, "a.h5", file, 0, true);
    cr_expect_eq(chunk_wrong(dataset, file, 1, 7), 0, "%s", what);
    cr_expect_eq(chunk_wrong(dataset, file, 17, 64), 0, "%s", what);
    if (decoded)
        cr_expect_gt(hdf5io_dataset_pooled(dataset), 0, "%s", what);
    hdf5io_dataset_ways(dataset, 0, counts);
    cr_expect_eq(counts[way], 1, "%s", what);
    hdf5io_dataset_ways(dataset, 1, counts);
    cr_expect_eq(counts[HDF5IO_WAY_PREAD], 1, "%s", what);
    hdf5io_dataset_close(dataset);
    /* no room for any chunk */
    dataset = chunk_open(directory, "a.h5", file, 1, false);
    cr_expect_eq(chunk_wrong(dataset, file, 17, 3), 0, "%s", what);
    hdf5io_dataset_close(dataset);
}

Test(chunks, all_filters_and_types_give_the_bits_of_contiguous_storage)
{
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_STD_I16BE,
                           H5T_STD_U8LE,   H5T_IEEE_F64LE, H5T_STD_U64BE};
    char what[64];

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (unsigned filters = 0; filters < CHUNK_FILTERS; filters++) {
            chunk_file_t file = five;

            file.type = types[t];
            file.filters = filters;
            snprintf(what, sizeof what, "type %zu, filters %u", t, filters);
            if ((filters & CHUNK_LZF) != 0)
                chunk_lzf_register();
            same_bits(&file, HDF5IO_WAY_CHUNKS, what);
        }
}

Test(chunks, shapes_of_one_number_a_row_and_of_one_chunk)
{
    const chunk_file_t files[] = {
        {.ndim = 1, .dims = {1000}, .chunk = {37}},
        {.ndim = 2, .dims = {10, 50}, .chunk = {10, 50}},
        {.ndim = 2, .dims = {10, 50}, .chunk = {1, 50}},
        {.ndim = 3, .dims = {9, 4, 6}, .chunk = {2, 1, 6}},
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        chunk_file_t file = files[i];

        file.type = H5T_IEEE_F32LE;
        file.filters = CHUNK_SHUFFLE | CHUNK_DEFLATE | CHUNK_FLETCHER32;
        same_bits(&file, HDF5IO_WAY_CHUNKS, "shape");
    }
}

Test(chunks, after_a_user_block)
{
    chunk_file_t file = five;

    file.type = H5T_STD_I32LE;
    file.filters = CHUNK_DEFLATE;
    file.user_block = 2048;
    same_bits(&file, HDF5IO_WAY_CHUNKS, "user block");
}

/* HDF5 1.10 is not asked for so many places. */
#ifdef HAVE_H5DCHUNK_ITER
#define MANY HDF5IO_WAY_CHUNKS
#else
#define MANY HDF5IO_WAY_MANY
#endif
Test(chunks, more_chunks_than_an_old_hdf5_is_asked_for)
{
    const chunk_file_t file = {.ndim = 2,
                               .dims = {5000, 3},
                               .chunk = {1, 3},
                               .type = H5T_STD_I32LE,
                               .filters = CHUNK_SHUFFLE | CHUNK_DEFLATE};

    same_bits(&file, MANY, "many chunks");
}

static void more_early(hid_t create)
{
    H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
}

/* Number of calls of pread while all samples of [file] are read, [batch] at a
 * time. */
static int preads_of(const chunk_file_t *file, int64_t jump, int64_t batch)
{
    hdf5io_dataset_t *dataset;
    int before;

    chunk_write(directory, "a.h5", file);
    dataset = chunk_open(directory, "a.h5", file, 0, false);
    before = atomic_load(&preads);
    cr_expect_eq(chunk_wrong(dataset, file, jump, batch), 0);
    before = atomic_load(&preads) - before;
    hdf5io_dataset_close(dataset);
    return before;
}

/* 13 chunks of 4 rows with 6000 bytes. */
Test(chunks, long_rows_without_filters_are_read_to_their_places)
{
    chunk_file_t file = {.ndim = 2,
                         .dims = {50, 1500},
                         .chunk = {4, 1500},
                         .type = H5T_IEEE_F32LE};

    same_bits(&file, HDF5IO_WAY_ROWS, "as they are");
    file.type = H5T_IEEE_F32BE;
    same_bits(&file, HDF5IO_WAY_ROWS, "swapped");
    file.user_block = 512;
    same_bits(&file, HDF5IO_WAY_ROWS, "after a user block");
    file.more = more_early;
    file.type = H5T_IEEE_F32LE;
    /* one read for all of /y, which is short */
    cr_expect_eq(preads_of(&file, 3, 50), 50 + 1, "rows apart");
    cr_expect_lt(preads_of(&file, 1, 50), 13, "neighbours are read together");
    file.chunk[0] = 0;
    cr_expect_eq(preads_of(&file, 3, 50), 50 + 1, "contiguous, apart");
    cr_expect_eq(preads_of(&file, 1, 10), 5 + 1, "contiguous");
    cr_expect_eq(preads_of(&file, 1, 50), 1 + 1, "contiguous, at once");
}

/* After a read that took long, the system is told of all later reads of the
 * batch. */
Test(chunks, slow_storage_is_told_what_follows)
{
    chunk_file_t file = {.ndim = 2,
                         .dims = {50, 1500},
                         .chunk = {4, 1500},
                         .type = H5T_IEEE_F32LE};
    hdf5io_dataset_t *dataset;

    for (int layout = 0; layout < 2; layout++) {
        chunk_write(directory, "a.h5", &file);
        dataset = chunk_open(directory, "a.h5", &file, 0, false);
        slow_length = 6000;
        atomic_store(&slow_count, 0);
        atomic_store(&slow_next, true);
        cr_expect_eq(chunk_wrong(dataset, &file, 3, 50), 0);
        cr_expect_geq(atomic_load(&slow_count), 49, "%d reads of layout %d",
                      atomic_load(&slow_count), layout);
        hdf5io_dataset_close(dataset);
        file.chunk[0] = 0;
    }
}

/* Chunks that hold a part of a row, or short rows, go through the pool. But if
 * many short rows are read at once, they do not. */
Test(chunks, short_and_divided_rows_without_filters)
{
    chunk_file_t file = {.ndim = 2,
                         .dims = {50, 1500},
                         .chunk = {4, 1000},
                         .type = H5T_IEEE_F32LE};

    same_bits(&file, HDF5IO_WAY_CHUNKS, "divided");
    file.dims[0] = 3000;
    file.dims[1] = file.chunk[1] = 5;
    file.chunk[0] = 100;
    same_bits(&file, HDF5IO_WAY_CHUNKS, "short");
    file.more = more_early;
    cr_expect_eq(preads_of(&file, 7, 10), 30 + 1, "each chunk once");
    cr_expect_lt(preads_of(&file, 1, 3000), 30, "many rows at once");
}

static void more_nbit(hid_t create)
{
    H5Pset_nbit(create);
}

static void more_twice(hid_t create)
{
    H5Pset_shuffle(create);
    H5Pset_shuffle(create);
}

Test(chunks, hdf5_decodes_what_this_code_does_not)
{
    chunk_file_t file = five;

    file.type = H5T_STD_I32LE;
    file.more = more_nbit;
    same_bits(&file, HDF5IO_WAY_FILTER, "nbit");
    file.more = more_twice;
    same_bits(&file, HDF5IO_WAY_FILTER, "twice");
}

/* Is a dataset of [width] plain chunks of 16 MiB in a row decoded here? The
 * file has holes instead of data. */
static bool plain_row(hsize_t width)
{
    const hsize_t chunk[4] = {4, 4, 1024, 256};
    const hsize_t dims[4] = {4, 4 * width, 1024, 256};
    hid_t file = files_create(directory, "row.h5");
    hid_t space = H5Screate_simple(4, dims, NULL);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hdf5io_pool_t *pool = NULL;
    hdf5io_chunks_t *chunks = NULL;
    hdf5io_way_t way;
    chunks_source_t source = {.file = "row.h5",
                              .path = "/x",
                              .create = create,
                              .ndim = 4,
                              .dims = dims,
                              .number_bytes = 4,
                              .fd = -1};
    bool here;

    cr_assert_eq(hdf5io_pool_open(1, &pool, NULL), ERR_OK);
    H5Pset_chunk(create, 4, chunk);
    H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);
    source.pool = pool;
    source.dataset = H5Dcreate2(file, "/x", H5T_STD_I32LE, space, H5P_DEFAULT,
                                create, H5P_DEFAULT);
    cr_assert_geq(source.dataset, 0);
    h5_lock();
    cr_assert_eq(hdf5io_chunks_open(&source, &chunks, &way, NULL), ERR_OK);
    here = chunks != NULL;
    cr_expect_eq(way == HDF5IO_WAY_LARGE, !here, "way %d", way);
    hdf5io_chunks_close(chunks);
    H5Dclose(source.dataset);
    H5Pclose(create);
    H5Sclose(space);
    H5Fclose(file);
    h5_unlock();
    hdf5io_pool_close(pool);
    return here;
}

/* The pool keeps a row of chunks, and a header may claim any number. */
Test(chunks, a_long_row_of_plain_chunks_is_left_to_hdf5)
{
    cr_expect(plain_row(4));
    cr_expect_not(plain_row(20));
}

/* ---- single chunks --------------------------------------------------------
 */

/* A dataset of 4 chunks with 10 rows. */
static const chunk_file_t four = {
    .ndim = 2, .dims = {40, 6}, .chunk = {10, 6}, .type = 0};

static chunk_file_t four_with(unsigned filters)
{
    chunk_file_t file = four;

    file.type = H5T_IEEE_F32LE;
    file.filters = filters;
    return file;
}

Test(chunks, a_filter_mask_is_honoured)
{
    const chunk_file_t file =
        four_with(CHUNK_SHUFFLE | CHUNK_DEFLATE | CHUNK_FLETCHER32);
    char *path = files_path(directory, "a.h5");
    const hsize_t offset[2] = {20, 0};
    hdf5io_dataset_t *dataset;
    float values[60];
    hid_t out, set;

    chunk_write(directory, "a.h5", &file);
    for (int i = 0; i < 60; i++)
        values[i] = (float)chunk_value(20 * 6 + i);
    out = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(out, "/x", H5P_DEFAULT);
    cr_assert_geq(
        H5Dwrite_chunk(set, H5P_DEFAULT, 7, offset, sizeof values, values), 0);
    H5Dclose(set);
    H5Fclose(out);
    dataset = chunk_open(directory, "a.h5", &file, 0, false);
    cr_expect_eq(chunk_wrong(dataset, &file, 3, 8), 0);
    cr_expect_gt(hdf5io_dataset_pooled(dataset), 0);
    hdf5io_dataset_close(dataset);
    free(path);
}

/* Place and size of chunk [number] of /x. */
static void chunk_find(const char *path, hsize_t number, haddr_t *at,
                       hsize_t *bytes)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, "/x", H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    hsize_t offset[2];
    unsigned mask;

    cr_assert_geq(
        H5Dget_chunk_info(set, space, number, offset, &mask, at, bytes), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* Change a byte in the middle of chunk 2, and read: rows of other chunks are
 * right, and the error names the chunk. */
static void damage(unsigned filters)
{
    const chunk_file_t file = four_with(filters);
    const int64_t good = 35, bad = 24;
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    float x[6], y;
    haddr_t at;
    hsize_t bytes;
    err_t err = ERR_INIT;
    unsigned char byte;
    int fd;

    chunk_write(directory, "a.h5", &file);
    chunk_find(path, 2, &at, &bytes);
    fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pread(fd, &byte, 1, (off_t)(at + bytes / 2)), 1);
    byte ^= 0x55;
    cr_assert_eq(pwrite(fd, &byte, 1, (off_t)(at + bytes / 2)), 1);
    close(fd);
    dataset = chunk_open(directory, "a.h5", &file, 0, false);
    cr_assert_eq(hdf5io_dataset_read(dataset, &good, 1, x, &y, &err), ERR_OK);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(hdf5io_dataset_read(dataset, &bad, 1, x, &y, &err),
                     ERR_DATA, "filters %u", filters);
        cr_expect_not_null(strstr(err.text, path), "%s", err.text);
        cr_expect_not_null(strstr(err.text, "/x from row 20"), "%s", err.text);
    }
    hdf5io_dataset_close(dataset);
    free(path);
}

Test(chunks, a_damaged_chunk_is_named)
{
    damage(CHUNK_FLETCHER32);
    damage(CHUNK_SHUFFLE | CHUNK_DEFLATE | CHUNK_FLETCHER32);
    damage(CHUNK_DEFLATE);
}

Test(chunks, a_truncated_chunk_is_named)
{
    const chunk_file_t file = four_with(CHUNK_DEFLATE);
    const int64_t bad = 30;
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    float x[6], y;
    haddr_t at;
    hsize_t bytes;
    err_t err = ERR_INIT;

    chunk_write(directory, "a.h5", &file);
    chunk_find(path, 3, &at, &bytes);
    dataset = chunk_open(directory, "a.h5", &file, 0, false);
    files_truncate(path, (int64_t)(at + bytes / 2));
    cr_assert_eq(hdf5io_dataset_read(dataset, &bad, 1, x, &y, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "/x from row 30"), "%s", err.text);
    hdf5io_dataset_close(dataset);
    free(path);
}

Test(chunks, refused_reads_are_repeated)
{
    const chunk_file_t file = four_with(CHUNK_DEFLATE);
    const int numbers[] = {EIO, ESTALE};
    hdf5io_dataset_t *dataset;

    chunk_write(directory, "a.h5", &file);
    for (int i = 0; i < 2; i++) {
        dataset = chunk_open(directory, "a.h5", &file, 0, false);
        refusal_errno = numbers[i];
        atomic_store(&refusals, 1);
        cr_expect_eq(chunk_wrong(dataset, &file, 1, 8), 0);
        cr_expect_leq(atomic_load(&refusals), 0);
        cr_expect_eq(hdf5io_dataset_reads(dataset).retries, 1);
        atomic_store(&refusals, 0);
        hdf5io_dataset_close(dataset);
    }
}

/* Each chunk is read once while the pool holds it, and is counted as stored. */
Test(chunks, what_was_read_is_counted)
{
    const chunk_file_t file = four_with(CHUNK_SHUFFLE | CHUNK_DEFLATE);
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    hdf5io_reads_t reads, more;
    int64_t stored = 0;
    hsize_t bytes;
    haddr_t at;

    chunk_write(directory, "a.h5", &file);
    for (hsize_t i = 0; i < 4; i++) {
        chunk_find(path, i, &at, &bytes);
        stored += (int64_t)bytes;
    }
    dataset = chunk_open(directory, "a.h5", &file, 0, false);
    cr_expect_eq(hdf5io_dataset_reads(dataset).bytes, 0);
    cr_assert_eq(chunk_wrong(dataset, &file, 7, 10), 0);
    reads = hdf5io_dataset_reads(dataset);
    cr_expect_eq(reads.bytes, stored + 40 * (int64_t)sizeof(float));
    cr_expect_gt(reads.decode_s, 0);
    cr_expect_eq(reads.retries, 0);
    /* The pool still has the chunks and the short rows of /y. */
    cr_assert_eq(chunk_wrong(dataset, &file, 7, 10), 0);
    more = hdf5io_dataset_reads(dataset);
    cr_expect_eq(more.bytes, reads.bytes);
    hdf5io_dataset_close(dataset);
    free(path);
}

/* ---- threads --------------------------------------------------------------
 */

typedef struct reader {
    pthread_t thread;
    hdf5io_dataset_t *dataset;
    const chunk_file_t *file;
    int64_t jump, wrong;
} reader_t;

static void *reader_main(void *argument)
{
    reader_t *reader = argument;

    for (int turn = 0; turn < 3; turn++)
        reader->wrong +=
            chunk_wrong(reader->dataset, reader->file, reader->jump, 5 + turn);
    return NULL;
}

/* Readers that share chunks, with room for all of them and for few. */
Test(chunks, threads_share_chunks)
{
    const size_t bounds[] = {0, 1};
    chunk_file_t file = five;
    reader_t readers[4];

    file.type = H5T_IEEE_F32LE;
    file.filters = CHUNK_SHUFFLE | CHUNK_DEFLATE | CHUNK_FLETCHER32;
    chunk_write(directory, "a.h5", &file);
    for (int b = 0; b < 2; b++) {
        hdf5io_dataset_t *dataset =
            chunk_open(directory, "a.h5", &file, bounds[b], false);

        for (int i = 0; i < 4; i++) {
            readers[i] = (reader_t){
                .dataset = dataset, .file = &file, .jump = 2 * i + 1};
            cr_assert_eq(pthread_create(&readers[i].thread, NULL, reader_main,
                                        &readers[i]),
                         0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(readers[i].thread, NULL);
            cr_expect_eq(readers[i].wrong, 0);
        }
        hdf5io_dataset_close(dataset);
    }
}

/* ---- decoders -------------------------------------------------------------
 */

/* Any bytes: no byte beyond the buffer is written. */
Test(chunks, decoders_stay_within_their_buffers)
{
    unsigned char in[64], out[128 + 8];
    uint64_t state = 1;
    size_t bytes;

    for (int turn = 0; turn < 200000; turn++) {
        const size_t length = (size_t)turn % sizeof in;
        const size_t room = (size_t)turn % 129;

        for (size_t i = 0; i < length; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            in[i] = (unsigned char)(state >> 33);
            if (turn % 3 == 0 && i % 2 == 0)
                in[i] &= 31;
        }
        memset(out + room, 0x5a, 8);
        if (hdf5io_filter_lzf(in, length, out, room, &bytes))
            cr_assert_leq(bytes, room);
        in[0] = 0x78;
        in[1] = 0x9c;
        if (hdf5io_filter_inflate(in, length, out, room, &bytes))
            cr_assert_leq(bytes, room);
        for (int i = 0; i < 8; i++)
            cr_assert_eq(out[room + (size_t)i], 0x5a);
    }
}
