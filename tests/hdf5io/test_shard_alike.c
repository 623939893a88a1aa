/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shards in which only the numbers differ: HDF5 opens the first one, and the
 * others are compared with it. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "catalogue_facts.h"
#include "lib/io_count.h"
#include "open.h"

enum { SHARDS = 5, ROWS = 20, LENGTH = 5, TOKENS = 23 };

TestSuite(alike, .init = open_start, .fini = open_stop, .timeout = 120);

static char *part_path(int number)
{
    char name[32];

    snprintf(name, sizeof name, "part-%d.h5", number);
    return files_path(open_directory, name);
}

/* Write a shard with /spins and /phase. [type]: that of /phase. */
static void shard_write(int number, hid_t type)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_STD_I8LE, open_spin},
        {"/phase", 0, {0}, type, open_phase}};
    char *path = part_path(number);

    files_write(path, FILES_CONTIGUOUS, (int64_t)number * ROWS, ROWS, columns,
                2);
    free(path);
}

/* Search the [room] bytes at [data] for the [bytes] bytes [from], and replace
 * them by [to]. */
static void replace(char *data, size_t room, const void *from, const void *to,
                    size_t bytes)
{
    char *at = memmem(data, room, from, bytes);

    cr_assert_not_null(at);
    memcpy(at, to, bytes);
}

/* The numbers of shard [number] as they are stored. */
typedef struct numbers {
    int8_t spins[ROWS * OPEN_ELEMS];
    int64_t phases[ROWS];
} numbers_t;

static void numbers_fill(int number, numbers_t *out)
{
    for (int i = 0; i < ROWS * OPEN_ELEMS; i++)
        out->spins[i] = (int8_t)open_spin(
            (int64_t)number * ROWS + i / OPEN_ELEMS, i % OPEN_ELEMS);
    for (int i = 0; i < ROWS; i++)
        out->phases[i] = (int64_t)open_phase((int64_t)number * ROWS + i, 0);
}

/* Write shard [number] as a copy of shard 0 with its own numbers. HDF5 notes
 * the second in which it makes a dataset, so shards that it writes may
 * differ. */
static void shard_copy(int number)
{
    char *from = part_path(0), *to = part_path(number), *data = NULL;
    numbers_t old, new;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read(from, &data, &bytes, &err), ERR_OK, "%s", err.text);
    numbers_fill(0, &old);
    numbers_fill(number, &new);
    replace(data, bytes, old.spins, new.spins, sizeof old.spins);
    replace(data, bytes, old.phases, new.phases, sizeof old.phases);
    files_write_text(to, data, bytes);
    free(data);
    free(to);
    free(from);
}

static void shards_write(void)
{
    shard_write(0, H5T_STD_I64LE);
    for (int i = 1; i < SHARDS; i++)
        shard_copy(i);
}

static hdf5io_dataset_t *begin(void)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_begin(&open_all.config, &dataset, &err), ERR_OK,
                 "%s", err.text);
    return dataset;
}

static void look(hdf5io_dataset_t *dataset, int shard)
{
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_look(dataset, shard, &err), ERR_OK, "%s",
                 err.text);
}

static void finish(hdf5io_dataset_t *dataset)
{
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_finish(dataset, &err), ERR_OK, "%s", err.text);
}

/* Assert that both datasets know the same facts of shard [shard]. */
static void facts_compare(hdf5io_dataset_t *left, hdf5io_dataset_t *right,
                          int shard)
{
    catalogue_facts_t a, b;

    cr_assert(hdf5io_catalogue_get(hdf5io_dataset_catalogue(left), shard, &a));
    cr_assert(hdf5io_catalogue_get(hdf5io_dataset_catalogue(right), shard, &b));
    catalogue_facts_compare(&a, &b, 2);
    cr_assert_arr_eq(a.digests, b.digests, 2 * sizeof a.digests[0]);
}

/* If HDF5 opens a shard, there are more reads than this. */
#define READS_MOST 4

Test(alike, shards_are_opened_without_hdf5)
{
    hdf5io_dataset_t *dataset, *other;

    shards_write();
    dataset = begin();
    io_count_begin(".h5");
    look(dataset, 0);
    cr_assert_eq(io_count_opens(), 1);
    cr_assert_gt(io_count_reads(), READS_MOST);
    for (int i = 1; i < SHARDS; i++) {
        io_count_begin(".h5");
        look(dataset, i);
        cr_expect_eq(io_count_opens(), 1);
        cr_expect_leq(io_count_reads(), READS_MOST);
        other = begin();
        look(other, i);
        facts_compare(dataset, other, i);
        hdf5io_dataset_close(other);
    }
    finish(dataset);
    cr_assert_eq(open_wrong_orders(dataset, (int64_t)SHARDS * ROWS), 0);
    hdf5io_dataset_close(dataset);
}

Test(alike, digests_are_those_of_their_own_numbers)
{
    hdf5io_dataset_t *dataset, *other;

    shards_write();
    open_all.config.digest = true;
    dataset = begin();
    for (int i = 0; i < SHARDS; i++) {
        look(dataset, i);
        other = begin();
        look(other, i);
        facts_compare(dataset, other, i);
        hdf5io_dataset_close(other);
    }
    hdf5io_dataset_close(dataset);
}

/* Look at all shards. Shard [odd] has numbers of the other byte order, so it
 * has the same size as the others. vain[i]: shard i is opened once in vain;
 * [from]: the first of the shards that are opened without HDF5. */
static void check_odd(int odd, const bool vain[SHARDS], int from)
{
    char *first = part_path(0), *second = part_path(1);
    hdf5io_dataset_t *dataset;
    catalogue_facts_t facts;

    shards_write();
    shard_write(odd, H5T_STD_I64BE);
    cr_assert_eq(files_bytes(first), files_bytes(second));
    dataset = begin();
    for (int i = 0; i < SHARDS; i++) {
        io_count_begin(".h5");
        look(dataset, i);
        cr_expect_eq(io_count_opens(), vain[i] ? 2 : 1, "shard %d", i);
        cr_expect_eq(io_count_reads() <= READS_MOST, i >= from, "shard %d", i);
        cr_assert(
            hdf5io_catalogue_get(hdf5io_dataset_catalogue(dataset), i, &facts));
        cr_expect_eq(facts.columns[1].type.swap, i == odd, "shard %d", i);
    }
    finish(dataset);
    cr_assert_eq(open_wrong_orders(dataset, (int64_t)SHARDS * ROWS), 0);
    hdf5io_dataset_close(dataset);
    free(second);
    free(first);
}

Test(alike, a_shard_with_another_header_is_opened_by_hdf5)
{
    check_odd(1, (const bool[SHARDS]){false, true, true}, SHARDS);
}

Test(alike, the_first_shard_may_have_another_header)
{
    check_odd(0, (const bool[SHARDS]){false, true}, 2);
}

/* Look at shard 1, and return the outcome. [before]: look at shard 0 before. */
static err_code_t outcome(bool before, hdf5io_dataset_t **out, err_t *err)
{
    *out = begin();
    if (before)
        look(*out, 0);
    return hdf5io_dataset_look(*out, 1, err);
}

/* A look at a shard with a damaged byte has the same outcome, whether HDF5 has
 * opened an undamaged shard before or not. */
Test(alike, damage_is_found)
{
    char *path, *data = NULL;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    shards_write();
    path = part_path(1);
    cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK, "%s", err.text);
    for (size_t at = 0; at < bytes; at += 11) {
        hdf5io_dataset_t *compared, *alone;
        err_t one = ERR_INIT, other = ERR_INIT;
        err_code_t rc;

        data[at] ^= 0x55;
        files_write_text(path, data, bytes);
        rc = outcome(true, &compared, &one);
        cr_assert_eq(outcome(false, &alone, &other), rc, "byte %zu: %s / %s",
                     at, one.text, other.text);
        cr_assert_str_eq(one.text, other.text, "byte %zu", at);
        if (rc == ERR_OK)
            facts_compare(compared, alone, 1);
        hdf5io_dataset_close(compared);
        hdf5io_dataset_close(alone);
        data[at] ^= 0x55;
    }
    free(data);
    free(path);
}

Test(alike, a_shard_that_is_cut_or_gone_is_refused)
{
    hdf5io_dataset_t *dataset;
    char *path;
    err_t err = ERR_INIT;

    shards_write();
    dataset = begin();
    look(dataset, 0);
    path = part_path(1);
    files_truncate(path, files_bytes(path) - 8);
    cr_assert_eq(hdf5io_dataset_look(dataset, 1, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    free(path);
    path = part_path(2);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(hdf5io_dataset_look(dataset, 2, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    free(path);
    look(dataset, 3);
    hdf5io_dataset_close(dataset);
}

/* HDF5 follows an external link from a file to the same file only if it does
 * not lock files. */
static void unlocked_start(void)
{
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    open_start();
}

/* Shard 0 has an external link to its own name. Shard 1 is a copy of shard 0,
 * so its link leads to shard 0, too. */
Test(alike_unlocked, a_link_to_the_first_shard_leads_there,
     .init = unlocked_start, .fini = open_stop, .timeout = 120)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_STD_I8LE, open_spin},
        {"/numbers", 0, {0}, H5T_STD_I64LE, open_phase}};
    char *path = part_path(0);
    hdf5io_dataset_t *dataset, *other;
    hid_t file;

    files_write(path, FILES_CONTIGUOUS, 0, ROWS, columns, 2);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert_geq(H5Lcreate_external("part-0.h5", "/numbers", file, "phase",
                                     H5P_DEFAULT, H5P_DEFAULT),
                  0);
    H5Fclose(file);
    shard_copy(1);
    dataset = begin();
    look(dataset, 0);
    look(dataset, 1);
    other = begin();
    look(other, 1);
    facts_compare(dataset, other, 1);
    hdf5io_dataset_close(other);
    hdf5io_dataset_close(dataset);
    free(path);
}

static double token(int64_t row, int64_t element)
{
    (void)element;
    return (double)(row * row % 97);
}

/* The stream of each shard is divided into samples. The last numbers of a
 * stream belong to no sample, and differ, too. */
Test(alike, shards_may_hold_streams)
{
    const files_column_t column = {"/tokens", 0, {0}, H5T_STD_I32LE, token};
    char *path = part_path(0), *copy = part_path(1), *data = NULL;
    int32_t old[TOKENS], new[TOKENS];
    const int64_t row = TOKENS / LENGTH; /* the first one of shard 1 */
    int64_t target[LENGTH];
    float input[LENGTH];
    hdf5io_dataset_t *dataset;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    files_write(path, FILES_CONTIGUOUS, 0, TOKENS, &column, 1);
    cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK, "%s", err.text);
    for (int i = 0; i < TOKENS; i++) {
        old[i] = (int32_t)token(i, 0);
        new[i] = TOKENS - i;
    }
    replace(data, bytes, old, new, sizeof old);
    files_write_text(copy, data, bytes);
    open_setup_stream(&open_all, LENGTH, "[5]", 97);
    dataset = begin();
    look(dataset, 0);
    io_count_begin(".h5");
    look(dataset, 1);
    cr_expect_leq(io_count_reads(), READS_MOST);
    finish(dataset);
    cr_assert_eq(hdf5io_dataset_samples(dataset), 2 * row);
    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, target, &err),
                 ERR_OK, "%s", err.text);
    for (int i = 0; i < LENGTH; i++) {
        cr_expect_eq((int)input[i], new[i]);
        cr_expect_eq(target[i], new[i + 1]);
    }
    hdf5io_dataset_close(dataset);
    free(data);
    free(copy);
    free(path);
}
