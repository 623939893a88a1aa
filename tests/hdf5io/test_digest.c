/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/digest.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "open.h"

#define ROWS 3000

/* Digests of the only shard directory/a.h5: of inputs and of targets. */
typedef struct digests {
    uint64_t shape, input, target;
    int64_t told; /* bytes reported to [alive] */
} digests_t;

static void tell(void *context, int64_t bytes)
{
    *(int64_t *)context += bytes;
}

static digests_t digests_of(const char *directory, bool full)
{
    digests_t digests = {0};
    hdf5io_digest_how_t how = {
        .full = full, .alive = tell, .context = &digests.told};
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    err_t err = ERR_INIT;

    open_setup(&setup, directory, "a.h5");
    dataset = open_dataset(&setup);
    digests.shape = hdf5io_dataset_shape(dataset, 0);
    cr_assert_eq(
        hdf5io_dataset_digest(dataset, 0, 0, &how, &digests.input, &err),
        ERR_OK, "%s", err.text);
    cr_assert_eq(
        hdf5io_dataset_digest(dataset, 0, 1, &how, &digests.target, &err),
        ERR_OK, "%s", err.text);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    return digests;
}

Test(digest, is_of_the_numbers_in_any_layout)
{
    char *directory = files_make();

    for (int full = 0; full < 2; full++) {
        digests_t first = {0};

        for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
            digests_t now;

            open_write(directory, "a.h5", (files_layout_t)layout, 0, ROWS);
            now = digests_of(directory, full == 1);
            if (layout == 0)
                first = now;
            cr_assert_eq(now.shape, first.shape);
            cr_assert_eq(now.input, first.input, "layout %d", layout);
            cr_assert_eq(now.target, first.target, "layout %d", layout);
        }
        cr_assert_neq(first.input, first.target);
        cr_assert_eq(first.told, full == 1 ? ROWS * (12 + 8) : 0);
    }
    files_remove(directory);
}

Test(digest, of_all_bytes_finds_any_number)
{
    const int64_t at[] = {0, 1, ROWS * 4, ROWS * 12 - 1};
    char *directory = files_make(), *path = files_path(directory, "a.h5");
    digests_t first, now;

    open_write(directory, "a.h5", FILES_GZIP, 0, ROWS);
    first = digests_of(directory, true);
    for (int i = 0; i < 4; i++) {
        const double was = open_spin(at[i] / 12, at[i] % 12);

        files_poke(path, "/spins", at[i], was + 1);
        now = digests_of(directory, true);
        cr_assert_neq(now.input, first.input, "number %d", (int)at[i]);
        cr_assert_eq(now.target, first.target);
        cr_assert_eq(now.shape, first.shape);
        files_poke(path, "/spins", at[i], was);
        cr_assert_eq(digests_of(directory, true).input, first.input);
    }
    free(path);
    files_remove(directory);
}

/* Every second label differs. */
Test(digest, of_a_sample_finds_other_labels_and_both_ends)
{
    const int64_t ends[] = {0, ROWS - 1};
    char *directory = files_make(), *path = files_path(directory, "a.h5");
    digests_t first, now;

    open_write(directory, "a.h5", FILES_CHUNKED, 0, ROWS);
    first = digests_of(directory, false);
    for (int i = 0; i < 2; i++) {
        files_poke(path, "/phase", ends[i], 9);
        now = digests_of(directory, false);
        cr_assert_neq(now.target, first.target, "row %d", (int)ends[i]);
        cr_assert_eq(now.input, first.input);
        files_poke(path, "/phase", ends[i], open_phase(ends[i], 0));
    }
    open_write(directory, "a.h5", FILES_CHUNKED, 1, ROWS);
    now = digests_of(directory, false);
    cr_assert_neq(now.target, first.target);
    cr_assert_neq(now.input, first.input);
    files_remove(directory);
    free(path);
}

static double wide(int64_t row, int64_t element)
{
    return (double)((row * 3 + element) % 97);
}

/* Samples larger than a piece: pieces divide an inner dimension, not the
 * rows. */
Test(digest, of_a_sample_of_large_samples_is_the_same_in_any_layout)
{
    const files_column_t columns[] = {
        {"/spins", 3, {5, 70, 90}, H5T_STD_I16BE, wide},
        {"/phase", 0, {0}, H5T_STD_I64LE, open_phase}};
    char *directory = files_make(), *path = files_path(directory, "a.h5");
    uint64_t hash[2] = {0};

    for (int i = 0; i < 2; i++) {
        hdf5io_digest_how_t how = {.full = false};
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        err_t err = ERR_INIT;

        files_write(path, i == 0 ? FILES_CONTIGUOUS : FILES_GZIP, 0, 6, columns,
                    2);
        open_setup(&setup, directory, "a.h5");
        setup.config.inputs[0].elems = 5 * 70 * 90;
        dataset = open_dataset(&setup);
        cr_assert_eq(hdf5io_dataset_digest(dataset, 0, 0, &how, &hash[i], &err),
                     ERR_OK, "%s", err.text);
        hdf5io_dataset_close(dataset);
        open_setup_free(&setup);
    }
    cr_assert_eq(hash[0], hash[1]);
    free(path);
    files_remove(directory);
}

static double token(int64_t row, int64_t element)
{
    (void)element;
    return (double)(row * row % 50);
}

/* A full digest of a stream covers all its numbers once, including the last
 * target. */
Test(digest, of_a_stream_has_all_its_numbers)
{
    const files_column_t column = {"/tokens", 0, {0}, H5T_STD_U16LE, token};
    const int64_t at[] = {-1, 0, 500, 1000};
    char *directory = files_make(), *path = files_path(directory, "a.h5");
    uint64_t hash[4][2];

    for (int i = 0; i < 4; i++) {
        const hdf5io_digest_how_t how = {.full = true};
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        err_t err = ERR_INIT;

        files_write(path, i % 2 == 0 ? FILES_CONTIGUOUS : FILES_GZIP, 0, 1001,
                    &column, 1);
        if (at[i] >= 0)
            files_poke(path, "/tokens", at[i], 51);
        open_setup(&setup, directory, "a.h5");
        open_setup_stream(&setup, 10, "[10]", 60);
        setup.config.inputs[0].as = HDF5IO_AS_TOKENS;
        setup.config.inputs[0].limit = 60;
        dataset = open_dataset(&setup);
        cr_assert_eq(hdf5io_dataset_samples(dataset), 100);
        for (int k = 0; k < 2; k++)
            cr_assert_eq(
                hdf5io_dataset_digest(dataset, 0, k, &how, &hash[i][k], &err),
                ERR_OK, "%s", err.text);
        hdf5io_dataset_close(dataset);
        open_setup_free(&setup);
    }
    for (int i = 1; i < 4; i++)
        cr_assert(hash[i][0] != hash[0][0] || hash[i][1] != hash[0][1],
                  "number %d", (int)at[i]);
    free(path);
    files_remove(directory);
}
