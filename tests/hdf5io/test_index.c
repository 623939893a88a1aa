/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* .cddp-index: its facts about a shard are used as long as the shard is
 * unchanged. */
#include "hdf5io/index.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "hdf5io/dataset_index.h"
#include "hdf5io/digest.h"
#include "hdf5io/h5.h"
#include "lib/io_count.h"
#include "open.h"

enum { SHARDS = 4, ROWS = 20 };

TestSuite(index, .init = open_start, .fini = open_stop, .timeout = 120);

static void shards_write(files_layout_t layout)
{
    open_write_parts(open_directory, layout, SHARDS, ROWS);
    open_all.config.digest = true;
}

/* Open the dataset and close it; returns how often a shard was opened for
 * that. If [reads], all samples are read, too. */
static long opens_of(bool reads)
{
    hdf5io_dataset_t *dataset;
    long opens;

    io_count_begin(".h5");
    dataset = open_dataset(&open_all);
    opens = io_count_opens();
    cr_assert_eq(hdf5io_dataset_samples(dataset), SHARDS * ROWS);
    if (reads)
        cr_assert_eq(open_wrong_orders(dataset, SHARDS * ROWS), 0);
    hdf5io_dataset_close(dataset);
    return opens;
}

/* Write the index of the shards that are there. */
static void index_write(void)
{
    hdf5io_dataset_t *dataset = open_dataset(&open_all);
    err_t err = ERR_INIT;

    cr_assert_not(hdf5io_dataset_index_due(dataset), "few shards");
    cr_assert_eq(hdf5io_dataset_index_write(dataset, &err), ERR_OK, "%s",
                 err.text);
    hdf5io_dataset_close(dataset);
}

static void touch(const char *name, time_t seconds)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = seconds}};
    char *path = files_path(open_directory, name);

    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

/* Replace a shard by a copy with the same times, as cp -a makes. */
static void copy(const char *name)
{
    char *from = files_path(open_directory, name);
    char *to = files_path(open_directory, "copy"), *data = NULL;
    struct timespec times[2];
    struct stat status;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(stat(from, &status), 0);
    times[0] = status.st_atim;
    times[1] = status.st_mtim;
    cr_assert_eq(file_read(from, &data, &bytes, &err), ERR_OK, "%s", err.text);
    files_write_text(to, data, bytes);
    cr_assert_eq(utimensat(AT_FDCWD, to, times, 0), 0);
    cr_assert_eq(rename(to, from), 0);
    free(data);
    free(to);
    free(from);
}

/* The class of the first sample is looked for in shard 0. */
Test(index, shards_are_opened_when_they_are_read)
{
    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        shards_write((files_layout_t)layout);
        cr_assert_geq(opens_of(true), SHARDS);
        index_write();
        cr_assert_leq(opens_of(true), 2, "layout %d", layout);
    }
}

Test(index, a_shard_that_changed_is_opened)
{
    long opens;

    shards_write(FILES_CONTIGUOUS);
    index_write();
    opens = opens_of(false);
    touch("part-2.h5", 1000000000);
    cr_assert_eq(opens_of(true), opens + 1);
    index_write();
    cr_assert_eq(opens_of(true), opens);
    open_write(open_directory, "part-1.h5", FILES_GZIP, ROWS, ROWS);
    touch("part-1.h5", 1000000000);
    cr_assert_eq(opens_of(true), opens + 1);
}

/* The bytes of a copy may differ, and data.validate: quick must detect that. */
Test(index, a_copy_of_a_shard_is_opened_once)
{
    long opens;

    shards_write(FILES_CONTIGUOUS);
    index_write();
    opens = opens_of(false);
    copy("part-2.h5");
    cr_assert_eq(opens_of(true), opens + 1);
    index_write();
    cr_assert_eq(opens_of(true), opens);
}

/* Store the spins of a shard in chunks that only HDF5 decodes. */
static void spins_pack(const char *name, int64_t first)
{
    const hsize_t dims[3] = {ROWS, 3, 4}, chunk[3] = {1, 3, 4};
    char *path = files_path(open_directory, name);
    double spins[ROWS * OPEN_ELEMS];
    hid_t file, create, space, set;

    for (int i = 0; i < ROWS * OPEN_ELEMS; i++)
        spins[i] = open_spin(first + i / OPEN_ELEMS, i % OPEN_ELEMS);
    h5_lock();
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    create = H5Pcreate(H5P_DATASET_CREATE);
    space = H5Screate_simple(3, dims, NULL);
    cr_assert(H5Pset_chunk(create, 3, chunk) >= 0);
    cr_assert(H5Pset_nbit(create) >= 0);
    cr_assert(H5Ldelete(file, "/spins", H5P_DEFAULT) >= 0);
    set = H5Dcreate2(file, "/spins", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT,
                     create, H5P_DEFAULT);
    cr_assert(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       spins) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(create);
    H5Fclose(file);
    h5_unlock();
    free(path);
}

/* Open the dataset and read it; returns the bytes of its caches. All shards
 * must still be open. */
static size_t caches_of(void)
{
    hdf5io_dataset_t *dataset = open_dataset(&open_all);
    size_t cached;

    cr_assert_eq(open_wrong_orders(dataset, SHARDS * ROWS), 0);
    cr_assert_eq(hdf5io_dataset_open_shards(dataset), SHARDS);
    cached = hdf5io_dataset_cached(dataset);
    hdf5io_dataset_close(dataset);
    return cached;
}

/* The run that wrote the index may have had more or less memory. */
Test(index, caches_are_those_of_this_process)
{
    char name[32];
    size_t large, small;

    shards_write(FILES_CONTIGUOUS);
    for (int i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        spins_pack(name, (int64_t)i * ROWS);
    }
    large = caches_of();
    /* 500 bytes for each column, beside the slots */
    open_all.config.cache_bytes = (size_t)SHARDS * 2 * 500;
    small = caches_of();
    cr_assert_lt(small, open_all.config.cache_bytes);
    cr_assert_gt(large, open_all.config.cache_bytes);
    open_all.config.cache_bytes = 0;
    index_write();
    open_all.config.cache_bytes = (size_t)SHARDS * 2 * 500;
    cr_assert_eq(caches_of(), small);
}

Test(index, digests_are_those_of_the_shards)
{
    const hdf5io_digest_how_t how = {.full = false};
    uint64_t was = 0, now = 1;
    hdf5io_dataset_t *dataset;

    shards_write(FILES_CONTIGUOUS);
    dataset = open_dataset(&open_all);
    cr_assert_eq(hdf5io_dataset_digest(dataset, 3, 1, &how, &was, NULL),
                 ERR_OK);
    hdf5io_dataset_close(dataset);
    index_write();
    dataset = open_dataset(&open_all);
    io_count_begin(".h5");
    cr_assert_eq(hdf5io_dataset_digest(dataset, 3, 1, &how, &now, NULL),
                 ERR_OK);
    cr_assert_eq(io_count_opens(), 0);
    cr_assert_eq(now, was);
    hdf5io_dataset_close(dataset);
}

/* Each of several datasets in the directory has a section. */
Test(index, other_fields_and_other_shards_have_their_own)
{
    long first, second;

    shards_write(FILES_CONTIGUOUS);
    index_write();
    first = opens_of(false);
    open_all.target.path = (char *)"/temperature";
    open_all.config.targets[0].as = HDF5IO_AS_REALS;
    open_all.config.targets[0].elems = 2;
    cr_assert_geq(opens_of(false), SHARDS, "other fields");
    index_write();
    second = opens_of(false);
    cr_assert_leq(second, 1);
    open_all.target.path = (char *)"/phase";
    open_all.config.targets[0].as = HDF5IO_AS_CLASSES;
    open_all.config.targets[0].elems = 1;
    cr_assert_eq(opens_of(true), first);
    open_all.input.path = (char *)"spins";
    cr_assert_eq(opens_of(true), first, "/spins by another name");
    open_write(open_directory, "part-9.h5", FILES_CONTIGUOUS, SHARDS * ROWS, 0);
    cr_assert_geq(opens_of(false), SHARDS, "one shard more");
}

/* The index describes samples that are rows. */
Test(index, shards_as_samples_have_their_own)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    index_write();
    open_all.config.whole = true;
    cr_assert_eq(hdf5io_dataset_open(&open_all.config, &dataset, &err),
                 ERR_DATA);
}

Test(index, what_is_damaged_is_ignored)
{
    static const char *const texts[] = {"", "CDDPIDX1", "no index at all..."};
    char *path = files_path(open_directory, INDEX_NAME);

    shards_write(FILES_CONTIGUOUS);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        files_write_text(path, texts[i], strlen(texts[i]));
        cr_assert_geq(opens_of(true), SHARDS);
        index_write();
        cr_assert_leq(opens_of(true), 2);
        files_truncate(path, files_bytes(path) - 1);
        cr_assert_geq(opens_of(true), SHARDS);
    }
    free(path);
}

/* A build with zstd or Blosc must not use the facts of a build without it, nor
 * the other way round. These variables exchange the two kinds of build. */
static bool without_zstd, without_blosc;

bool __wrap_hdf5io_filter_zstd_built(void);
bool __real_hdf5io_filter_zstd_built(void);
bool __wrap_hdf5io_filter_blosc_built(void);
bool __real_hdf5io_filter_blosc_built(void);

bool __wrap_hdf5io_filter_zstd_built(void)
{
    return __real_hdf5io_filter_zstd_built() != without_zstd;
}

bool __wrap_hdf5io_filter_blosc_built(void)
{
    return __real_hdf5io_filter_blosc_built() != without_blosc;
}

Test(index, builds_with_other_decoders_have_their_own)
{
    shards_write(FILES_CONTIGUOUS);
    index_write();
    cr_assert_leq(opens_of(false), 1);
    for (int other = 1; other < 4; other++) {
        without_zstd = (other & 1) != 0;
        without_blosc = (other & 2) != 0;
        cr_expect_geq(opens_of(false), SHARDS, "decoders %d", other);
    }
    without_zstd = without_blosc = false;
    cr_assert_leq(opens_of(false), 1);
}

Test(index, what_is_too_much_drops_the_oldest_sections)
{
    static const char facts[100];
    hdf5io_index_t index = {0};
    void *data = NULL;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    for (uint64_t key = 1; key <= 5; key++)
        hdf5io_index_put(&index, &(index_section_t){.key = key,
                                                    .packed = facts,
                                                    .bytes = sizeof facts});
    cr_assert_eq(hdf5io_index_print(&index, &data, &bytes, &err), ERR_OK);
    mem_free(data);
    hdf5io_index_shorten(&index, bytes);
    cr_assert_eq(index.count, 5);
    hdf5io_index_shorten(&index, bytes - 1);
    cr_assert_eq(index.count, 4);
    cr_assert_null(hdf5io_index_find(&index, 1));
    hdf5io_index_shorten(&index, 300);
    cr_assert_eq(index.count, 2);
    cr_assert_eq(index.sections[0].key, 5);
    cr_assert_eq(index.sections[1].key, 4);
    cr_assert_eq(hdf5io_index_print(&index, &data, &bytes, &err), ERR_OK);
    cr_assert_leq(bytes, 300);
    mem_free(data);
    hdf5io_index_shorten(&index, 10);
    cr_assert_eq(index.count, 0);
}

Test(index, the_sections_that_were_written_last_stay)
{
    hdf5io_index_t index = {0}, again = {0};
    void *data = NULL;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    for (uint64_t key = 0; key < INDEX_SECTIONS_MAX + 5; key++)
        hdf5io_index_put(
            &index, &(index_section_t){.key = key % (INDEX_SECTIONS_MAX + 2),
                                       .packed = "abc",
                                       .bytes = key % 4});
    cr_assert_eq(index.count, INDEX_SECTIONS_MAX);
    cr_assert_eq(index.sections[0].key, 2);
    cr_assert_null(hdf5io_index_find(&index, 3), "it gave way");
    cr_assert_eq(hdf5io_index_print(&index, &data, &bytes, &err), ERR_OK);
    cr_assert_eq(hdf5io_index_parse(data, bytes, &again, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(again.count, index.count);
    for (int i = 0; i < index.count; i++)
        cr_assert_eq(again.sections[i].key, index.sections[i].key);
    mem_free(data);
}
