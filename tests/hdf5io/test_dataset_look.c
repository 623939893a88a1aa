/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Ranks that look at shards by turns and merge what they found. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "hdf5io/digest.h"
#include "lib/io_count.h"
#include "open.h"

enum { RANKS = 3, SHARDS = 8, ROWS = 20 };

TestSuite(look, .init = open_start, .fini = open_stop, .timeout = 120);

static void shards_write(files_layout_t layout)
{
    open_write_parts(open_directory, layout, SHARDS, ROWS);
}

/* Begin a dataset for each rank, and look by turns. */
static void ranks_look(hdf5io_dataset_t *ranks[RANKS])
{
    err_t err = ERR_INIT;

    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(hdf5io_dataset_begin(&open_all.config, &ranks[r], &err),
                     ERR_OK, "%s", err.text);
        cr_assert_eq(hdf5io_dataset_shards(ranks[r]), SHARDS);
        cr_assert_eq(hdf5io_dataset_open_shards(ranks[r]), 0);
        for (int i = r; i < SHARDS; i += RANKS)
            cr_assert_eq(hdf5io_dataset_look(ranks[r], i, &err), ERR_OK, "%s",
                         err.text);
    }
}

/* Give every rank the facts that all ranks found. */
static void ranks_merge(hdf5io_dataset_t *ranks[RANKS])
{
    err_t err = ERR_INIT;

    for (int from = 0; from < RANKS; from++) {
        void *packed = NULL;
        size_t bytes = 0;

        cr_assert_eq(
            hdf5io_catalogue_pack(hdf5io_dataset_catalogue(ranks[from]), from,
                                  RANKS, &packed, &bytes, &err),
            ERR_OK, "%s", err.text);
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(
                hdf5io_catalogue_merge(hdf5io_dataset_catalogue(ranks[r]),
                                       packed, bytes, &err),
                ERR_OK, "%s", err.text);
        mem_free(packed);
    }
}

static void ranks_finish(hdf5io_dataset_t *ranks[RANKS])
{
    err_t err = ERR_INIT;

    ranks_look(ranks);
    ranks_merge(ranks);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(hdf5io_dataset_finish(ranks[r], &err), ERR_OK, "%s",
                     err.text);
}

static void ranks_close(hdf5io_dataset_t *ranks[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        hdf5io_dataset_close(ranks[r]);
}

/* Number of shards with which rank [r] has to do. */
static int share_of(int r)
{
    return (SHARDS - r + RANKS - 1) / RANKS;
}

/* Opens that a shard needs, at which another rank looked: contiguous ones are
 * read without HDF5. */
static int opens_of(files_layout_t layout)
{
    return layout == FILES_GZIP ? 2 : 1;
}

static void check_layout(files_layout_t layout)
{
    hdf5io_dataset_t *ranks[RANKS] = {0};

    shards_write(layout);
    ranks_finish(ranks);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(hdf5io_dataset_open_shards(ranks[r]), share_of(r));
        cr_assert_eq(hdf5io_dataset_samples(ranks[r]), SHARDS * ROWS);
        cr_assert_eq(hdf5io_dataset_sample_bytes(ranks[r]),
                     hdf5io_dataset_sample_bytes(ranks[0]));
        io_count_begin(".h5");
        cr_assert_eq(open_wrong_orders(ranks[r], SHARDS * ROWS), 0);
        cr_assert_eq(io_count_opens(),
                     (SHARDS - share_of(r)) * opens_of(layout));
        cr_assert_eq(hdf5io_dataset_open_shards(ranks[r]), SHARDS);
    }
    ranks_close(ranks);
}

Test(look, shards_that_others_looked_at_are_read_when_they_are_contiguous)
{
    check_layout(FILES_CONTIGUOUS);
}

Test(look, shards_that_others_looked_at_are_read_when_they_are_compressed)
{
    check_layout(FILES_GZIP);
}

Test(look, shards_that_others_looked_at_are_read_behind_a_user_block)
{
    check_layout(FILES_USERBLOCK);
}

/* Read one sample of shard 1, at which rank 0 did not look. */
static err_code_t read_other(hdf5io_dataset_t *dataset, err_t *err)
{
    int64_t row = ROWS + 3, target;
    float input[OPEN_ELEMS];

    return hdf5io_dataset_read(dataset, &row, 1, input, &target, err);
}

Test(look, a_shard_that_changed_since_is_refused)
{
    hdf5io_dataset_t *ranks[RANKS] = {0};
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    ranks_finish(ranks);
    open_write(open_directory, "part-1.h5", FILES_CONTIGUOUS, ROWS, ROWS - 1);
    cr_assert_eq(read_other(ranks[0], &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "part-1.h5"), "%s", err.text);
    ranks_close(ranks);
}

Test(look, a_shard_that_is_gone_since_is_refused)
{
    char *path = files_path(open_directory, "part-1.h5");
    hdf5io_dataset_t *ranks[RANKS] = {0};
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    ranks_finish(ranks);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(read_other(ranks[0], &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    ranks_close(ranks);
    free(path);
}

Test(look, a_shard_that_was_cut_since_is_refused)
{
    char *path = files_path(open_directory, "part-1.h5");
    hdf5io_dataset_t *ranks[RANKS] = {0};
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    ranks_finish(ranks);
    files_truncate(path, files_bytes(path) / 2);
    cr_assert_eq(read_other(ranks[0], &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    ranks_close(ranks);
    free(path);
}

/* Shard 4 has other shapes than shard 0. Rank 1 looks at 4 and never at 0. */
Test(look, shapes_that_disagree_are_found_by_all)
{
    const files_column_t columns[] = {
        {"/spins", 2, {4, 3}, H5T_STD_I8LE, open_spin},
        {"/phase", 0, {0}, H5T_STD_I64LE, open_phase}};
    char *path = files_path(open_directory, "part-4.h5");
    hdf5io_dataset_t *ranks[RANKS] = {0};

    shards_write(FILES_CONTIGUOUS);
    files_write(path, FILES_CONTIGUOUS, 4 * ROWS, ROWS, columns, 2);
    ranks_look(ranks);
    ranks_merge(ranks);
    for (int r = 0; r < RANKS; r++) {
        err_t err = ERR_INIT;

        cr_assert_eq(hdf5io_dataset_finish(ranks[r], &err), ERR_DATA);
        cr_assert_not_null(strstr(err.text, "shapes disagree"), "%s", err.text);
        cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    }
    ranks_close(ranks);
    free(path);
}

Test(look, a_shard_at_which_nobody_looked_is_named)
{
    hdf5io_dataset_t *ranks[RANKS] = {0};
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    ranks_look(ranks);
    cr_assert_eq(hdf5io_dataset_finish(ranks[0], &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "part-1.h5"), "%s", err.text);
    ranks_close(ranks);
}

Test(look, a_bad_shard_is_named_by_the_rank_that_looks_at_it)
{
    char *path = files_path(open_directory, "part-2.h5");
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    files_write_text(path, "nothing", 7);
    cr_assert_eq(hdf5io_dataset_begin(&open_all.config, &dataset, &err),
                 ERR_OK);
    cr_assert_eq(hdf5io_dataset_look(dataset, 0, &err), ERR_OK);
    cr_assert_eq(hdf5io_dataset_look(dataset, 2, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    hdf5io_dataset_close(dataset);
    free(path);
}

/* Get the digests of a sample of the numbers, of all shards and fields. */
static void digests_get(hdf5io_dataset_t *dataset, uint64_t out[2 * SHARDS])
{
    const hdf5io_digest_how_t how = {.full = false};
    err_t err = ERR_INIT;

    for (int i = 0; i < 2 * SHARDS; i++)
        cr_assert_eq(
            hdf5io_dataset_digest(dataset, i / 2, i % 2, &how, &out[i], &err),
            ERR_OK, "%s", err.text);
}

/* The digests of all shards are known without their files. */
Test(look, digests_travel_with_the_facts)
{
    uint64_t want[2 * SHARDS], got[2 * SHARDS];
    hdf5io_dataset_t *ranks[RANKS] = {0}, *alone;
    char name[32];

    shards_write(FILES_CONTIGUOUS);
    open_write(open_directory, "part-3.h5", FILES_GZIP, 3 * ROWS, ROWS);
    alone = open_dataset(&open_all);
    digests_get(alone, want);
    hdf5io_dataset_close(alone);
    open_all.config.digest = true;
    ranks_finish(ranks);
    for (int i = 0; i < SHARDS; i++) {
        char *path;

        snprintf(name, sizeof name, "part-%d.h5", i);
        path = files_path(open_directory, name);
        cr_assert_eq(unlink(path), 0);
        free(path);
    }
    for (int r = 0; r < RANKS; r++) {
        digests_get(ranks[r], got);
        for (int i = 0; i < 2 * SHARDS; i++)
            cr_assert_eq(got[i], want[i], "rank %d, shard %d, field %d", r,
                         i / 2, i % 2);
    }
    ranks_close(ranks);
}

/* Shard 1 is replaced by one of the same shape, with or without other labels.
 */
static err_code_t read_replaced(bool other, err_t *err)
{
    char *path = files_path(open_directory, "part-1.h5");
    hdf5io_dataset_t *ranks[RANKS] = {0};
    err_code_t rc;

    shards_write(FILES_CONTIGUOUS);
    open_all.config.digest = true;
    ranks_finish(ranks);
    cr_assert_eq(unlink(path), 0);
    open_write(open_directory, "part-1.h5", FILES_CONTIGUOUS, ROWS, ROWS);
    if (other)
        files_poke(path, "/phase", 2, 1 - open_phase(ROWS + 2, 0));
    rc = read_other(ranks[0], err);
    cr_assert(rc == ERR_OK || strstr(err->text, path) != NULL, "%s", err->text);
    ranks_close(ranks);
    free(path);
    return rc;
}

Test(look, a_shard_that_was_replaced_by_other_numbers_is_refused)
{
    err_t err = ERR_INIT;

    cr_assert_eq(read_replaced(true, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "/phase"), "%s", err.text);
}

Test(look, a_shard_that_was_copied_again_is_read)
{
    err_t err = ERR_INIT;

    cr_assert_eq(read_replaced(false, &err), ERR_OK, "%s", err.text);
}

/* Read a sample of [shard]; returns how often a file was opened for it. */
static long opens_for(hdf5io_dataset_t *dataset, int shard)
{
    int64_t row = (int64_t)shard * ROWS, target = -1;
    float input[OPEN_ELEMS];
    err_t err = ERR_INIT;

    io_count_begin(".h5");
    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, &target, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq((double)target, open_phase(row, 0));
    return io_count_opens();
}

/* Of the open shards, the one that was read longest ago is closed. */
Test(look, the_shard_that_was_read_longest_ago_is_closed)
{
    hdf5io_dataset_t *dataset;

    shards_write(FILES_CONTIGUOUS);
    open_all.config.open_files = 2;
    open_all.config.cache_bytes = 1; /* so that no rows are kept */
    dataset = open_dataset(&open_all);
    cr_assert_eq(opens_for(dataset, 0), 1);
    cr_assert_eq(opens_for(dataset, 1), 1);
    cr_assert_eq(opens_for(dataset, 0), 0);
    cr_assert_eq(opens_for(dataset, 2), 1, "this closes shard 1");
    cr_assert_eq(opens_for(dataset, 0), 0);
    cr_assert_eq(opens_for(dataset, 2), 0);
    cr_assert_eq(opens_for(dataset, 1), 1, "this closes shard 0");
    cr_assert_eq(opens_for(dataset, 2), 0);
    cr_assert_eq(opens_for(dataset, 0), 1);
    hdf5io_dataset_close(dataset);
}

/* Another host may have other files behind the links of the same shard, so each
 * host must read what it sees. */
Test(look, no_digest_of_shards_that_refer_to_other_files_travels)
{
    hdf5io_dataset_t *ranks[RANKS] = {0};
    catalogue_facts_t facts;
    hid_t file;

    shards_write(FILES_CONTIGUOUS);
    open_write(open_directory, "target", FILES_CONTIGUOUS, 0, ROWS);
    file = files_create(open_directory, "part-0.h5");
    H5Lcreate_external("target", "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external("target", "/phase", file, "phase", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
    open_all.config.digest = true;
    ranks_finish(ranks);
    for (int r = 0; r < RANKS; r++) {
        const hdf5io_catalogue_t *catalogue =
            hdf5io_dataset_catalogue(ranks[r]);

        for (int i = 0; i < SHARDS; i++) {
            cr_assert(hdf5io_catalogue_get(catalogue, i, &facts));
            cr_assert_eq(facts.columns[0].linked, i == 0);
            cr_assert_eq(facts.digested, i != 0);
        }
        cr_assert_eq(open_wrong_orders(ranks[r], SHARDS * ROWS), 0);
    }
    ranks_close(ranks);
}
