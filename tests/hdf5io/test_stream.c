/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Streams of numbers that are divided into samples (data.sequence), and targets
 * with several classes per sample, some of them ignored. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"

#define LENGTH 5
#define CLASSES 97

static double token(int64_t row, int64_t element)
{
    (void)element;
    return (double)(row * row % CLASSES);
}

static void stream_write(const char *directory, const char *name,
                         files_layout_t layout, hid_t type, int64_t first,
                         int64_t count)
{
    const files_column_t column = {"/tokens", 0, {0}, type, token};
    char *path = files_path(directory, name);

    files_write(path, layout, first, count, &column, 1);
    free(path);
}

static void stream_setup(open_setup_t *setup, const char *directory)
{
    open_setup(setup, directory, "*.h5");
    open_setup_stream(setup, LENGTH, "[5]", CLASSES);
}

/* Two files: 23 numbers give 4 samples; 11 numbers, starting at number 40, give
 * 2. */
static const int64_t starts[] = {0, 5, 10, 15, 40, 45};

static void check_samples(hdf5io_dataset_t *dataset)
{
    const int64_t index[] = {4, 0, 1, 5, 3, 2, 2};
    float input[7][LENGTH];
    int64_t target[7][LENGTH];
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_samples(dataset), 6);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 7, input[0], target, &err),
                 ERR_OK, "%s", err.text);
    for (int n = 0; n < 7; n++)
        for (int i = 0; i < LENGTH; i++) {
            int64_t at = starts[index[n]] + i;

            cr_assert_eq((double)input[n][i], token(at, 0), "%d %d", n, i);
            cr_assert_eq((double)target[n][i], token(at + 1, 0), "%d %d", n, i);
        }
}

Test(stream, is_cut_into_samples_whatever_the_layout_and_type)
{
    const hid_t types[] = {H5T_STD_U8LE, H5T_STD_I32BE, H5T_STD_U16LE,
                           H5T_IEEE_F32LE};

    for (int layout = 0; layout < FILES_LAYOUTS; layout++)
        for (int t = 0; t < 4; t++) {
            char *directory = files_make();
            hdf5io_dataset_t *dataset;
            open_setup_t setup;

            stream_write(directory, "a.h5", (files_layout_t)layout, types[t], 0,
                         23);
            stream_write(directory, "b.h5", FILES_CONTIGUOUS, types[t], 40, 11);
            stream_setup(&setup, directory);
            dataset = open_dataset(&setup);
            check_samples(dataset);
            hdf5io_dataset_close(dataset);
            open_setup_free(&setup);
            files_remove(directory);
        }
}

/* The last sample needs one more number, for its last target. */
Test(stream, has_as_many_samples_as_have_a_target)
{
    const int64_t counts[] = {1, 5, 6, 10, 11};
    const int64_t samples[] = {0, 0, 1, 1, 2};

    for (int i = 0; i < 5; i++) {
        char *directory = files_make();
        hdf5io_dataset_t *dataset;
        open_setup_t setup;

        stream_write(directory, "a.h5", FILES_GZIP, H5T_STD_U8LE, 0, counts[i]);
        stream_write(directory, "b.h5", FILES_CONTIGUOUS, H5T_STD_U8LE, 0, 6);
        stream_setup(&setup, directory);
        dataset = open_dataset(&setup);
        cr_expect_eq(hdf5io_dataset_samples(dataset), samples[i] + 1);
        hdf5io_dataset_close(dataset);
        open_setup_free(&setup);
        files_remove(directory);
    }
}

/* A series of measurements: the loss takes floats, which are scaled like the
 * input. */
Test(stream, of_floats_has_scaled_targets)
{
    const int64_t index = 5;
    float input[LENGTH], target[LENGTH];
    char *directory = files_make();
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    err_t err = ERR_INIT;

    stream_write(directory, "a.h5", FILES_CONTIGUOUS, H5T_IEEE_F64LE, 0, 40);
    stream_setup(&setup, directory);
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.input.scale = 0.5;
    setup.input.shift = 1;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, &index, 1, input, target, &err),
                 ERR_OK);
    for (int i = 0; i < LENGTH; i++) {
        cr_expect_eq(input[i], (float)token(25 + i, 0) * 0.5f + 1);
        cr_expect_eq(target[i], (float)token(26 + i, 0) * 0.5f + 1);
    }
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}

static void expect_error(const open_setup_t *setup, const char *says)
{
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;

    cr_assert_neq(hdf5io_dataset_open(&setup->config, &dataset, &err), ERR_OK);
    cr_expect_not_null(strstr(err.text, says), "%s", err.text);
}

Test(stream, that_is_none_is_refused)
{
    char *directory = files_make();
    open_setup_t setup;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 10);
    stream_setup(&setup, directory);
    setup.input.path = (char *)"/spins";
    expect_error(&setup, "a.h5: /spins has rows of shape [3, 4]: with "
                         "data.sequence it is one stream");
    setup.input.path = (char *)"/phase";
    setup.config.sequence = 10;
    setup.config.inputs[0].elems = setup.config.targets[0].elems = 10;
    expect_error(&setup, "a.h5 holds no samples");
    setup.config.sequence = 4;
    setup.config.inputs[0].elems = setup.config.targets[0].elems = LENGTH;
    expect_error(&setup, "samples of /phase are [4] (4 values), but "
                         "model.input is [5]");
    setup.config.sequence = LENGTH;
    setup.input.scale = 2;
    expect_error(&setup, "data.input: scale 2");
    open_setup_free(&setup);
    files_remove(directory);
}

/* ---- several classes a sample ------------------------------------------- */

static double pixel(int64_t row, int64_t element)
{
    return element == 2 ? 255 : (double)(row + element) / 2 + 1;
}

Test(stream, ignored_numbers_pass_as_they_are_stored)
{
    const files_column_t columns[] = {{"/x", 0, {0}, H5T_STD_U8LE, token},
                                      {"/y", 2, {2, 2}, H5T_STD_U8LE, pixel}};
    const int64_t index[] = {1, 0};
    char *directory = files_make(), *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    float input[2];
    int64_t target[2][4];
    err_t err = ERR_INIT;

    files_write(path, FILES_CONTIGUOUS, 0, 3, columns, 2);
    open_setup(&setup, directory, "a.h5");
    setup.input.path = (char *)"/x";
    setup.target =
        (hdf5io_field_t){.path = (char *)"/y", .scale = 1, .shift = -1};
    setup.config.targets[0].ignore = true;
    setup.config.targets[0].ignored = 255;
    setup.config.inputs[0].elems = 1;
    setup.config.targets[0].elems = 4;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 2, input, target, &err),
                 ERR_OK, "%s", err.text);
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 4; i++)
            cr_expect_eq(target[n][i], i == 2 ? 255 : (index[n] + i) / 2);
    hdf5io_dataset_close(dataset);
    setup.config.targets[0].ignored = 254;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 2, input, target, &err),
                 ERR_DATA);
    cr_expect_not_null(strstr(err.text, "holds label 255"), "%s", err.text);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
    files_remove(directory);
}
