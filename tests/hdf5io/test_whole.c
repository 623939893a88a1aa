/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files that are one sample each (data.samples: files). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/digest.h"
#include "open.h"

#define FILES 7

/* Write file [number] of [layout]: /spins [3, 4], and /phase, a single value or
 * [1]. */
static void whole_write(const char *directory, files_layout_t layout,
                        int number, bool single)
{
    const files_column_t columns[] = {
        {"/spins", 1, {4}, H5T_STD_I16BE, open_spin}};
    const int64_t phase = (int64_t)open_phase(number, 0);
    const hsize_t one = 1;
    char *name = str_printf("s-%d.h5", number);
    char *path = files_path(directory, name);
    hid_t file, space, set;

    files_write(path, layout, number * 3, 3, columns, 1);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    space = single ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &one, NULL);
    set = H5Dcreate2(file, "/phase", H5T_STD_I64LE, space, H5P_DEFAULT,
                     H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(
        H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &phase),
        0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    free(path);
    free(name);
}

/* Number of wrong values in the samples [index]. */
static int whole_wrong(hdf5io_dataset_t *dataset, const int64_t *index,
                       int count)
{
    float spins[2 * FILES][12];
    int64_t phases[2 * FILES];
    err_t err = ERR_INIT;
    int wrong = 0;

    cr_assert_eq(
        hdf5io_dataset_read(dataset, index, count, spins[0], phases, &err),
        ERR_OK, "%s", err.text);
    for (int i = 0; i < count; i++) {
        wrong += (double)phases[i] != open_phase(index[i], 0);
        for (int e = 0; e < 12; e++)
            wrong +=
                (double)spins[i][e] != open_spin(index[i] * 3 + e / 4, e % 4);
    }
    return wrong;
}

Test(whole, each_file_is_one_sample)
{
    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        const int64_t index[] = {6, 0, 3, 4, 3, 1};
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        char *directory;

        open_begin(&directory, &setup, "s-*.h5");
        for (int i = 0; i < FILES; i++)
            whole_write(directory, (files_layout_t)layout, i, i % 2);
        setup.config.whole = true;
        setup.config.open_files = 2;
        /* All files need the same shape, and a single value has not the shape
         * [1]. */
        OPEN_REFUSED(&setup, ERR_DATA, "s-1.h5", "/phase", "shapes disagree");
        for (int i = 0; i < FILES; i++)
            whole_write(directory, (files_layout_t)layout, i, layout % 2);
        dataset = open_dataset(&setup);
        cr_assert_eq(hdf5io_dataset_samples(dataset), FILES);
        cr_assert_eq(hdf5io_dataset_shards(dataset), FILES);
        cr_expect_eq(whole_wrong(dataset, index, 6), 0, "layout %d", layout);
        cr_expect_eq(whole_wrong(dataset, index, 6), 0, "layout %d", layout);
        cr_expect_leq(hdf5io_dataset_open_shards(dataset), 2);
        hdf5io_dataset_close(dataset);
        open_end(directory, &setup);
    }
}

/* The digests of a sample and of all numbers do not depend on the layout. */
Test(whole, digests_are_those_of_the_numbers)
{
    uint64_t first[2][2] = {{0}};

    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        char *directory;

        open_begin(&directory, &setup, "s-*.h5");
        whole_write(directory, (files_layout_t)layout, 4, true);
        setup.config.whole = true;
        dataset = open_dataset(&setup);
        for (int full = 0; full < 2; full++)
            for (int k = 0; k < 2; k++) {
                const hdf5io_digest_how_t how = {.full = full};
                uint64_t digest = 0;
                err_t err = ERR_INIT;

                cr_assert_eq(
                    hdf5io_dataset_digest(dataset, 0, k, &how, &digest, &err),
                    ERR_OK, "%s", err.text);
                if (layout == 0)
                    first[full][k] = digest;
                cr_expect_eq(digest, first[full][k],
                             "layout %d, field %d, full %d", layout, k, full);
            }
        hdf5io_dataset_close(dataset);
        open_end(directory, &setup);
    }
}

Test(whole, errors_name_the_file)
{
    const files_column_t none[] = {
        {"/spins", 1, {4}, H5T_STD_I16BE, open_spin},
        {"/phase", 0, {0}, H5T_STD_U8LE, open_phase}};
    open_setup_t setup;
    char *directory, *path;

    open_begin(&directory, &setup, "s-*.h5");
    whole_write(directory, FILES_CONTIGUOUS, 0, false);
    path = files_path(directory, "s-1.h5");
    files_write(path, FILES_CHUNKED, 0, 0, none, 2);
    setup.config.whole = true;
    OPEN_REFUSED(&setup, ERR_DATA, "s-1.h5", "/spins", "no values");
    setup.config.whole = false;
    OPEN_REFUSED(&setup, ERR_DATA, "s-0.h5", "expected the same number");
    open_end(directory, &setup);
    free(path);
}
