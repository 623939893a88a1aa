/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* NaN or infinity in the data ends a run with a data error that names file and
 * row, on all ranks, and not with advice about the learning rate. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/harness.h"

/* Overwrite the first value of row [row] of dataset [name] in [file]. */
static void value_set(const harness_t *harness, const char *file,
                      const char *name, hsize_t row, float value)
{
    const hsize_t start[2] = {row, 0}, count[2] = {1, 1};
    char path[300];
    hid_t shard, set, space, one;

    snprintf(path, sizeof path, "%s/%s", harness->dir, file);
    shard = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(shard, name, H5P_DEFAULT);
    space = H5Dget_space(set);
    one = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    cr_assert_geq(
        H5Dwrite(set, H5T_NATIVE_FLOAT, one, space, H5P_DEFAULT, &value), 0);
    H5Sclose(one);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(shard);
}

/* A run whose data has one NaN or infinity. */
typedef struct bad_case {
    const char *file, *name;
    float value;
    const char *settings[4];
    const char *expected;
} bad_case_t;

static void check_bad(const bad_case_t *bad, int ranks)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, 100);
    value_set(&harness, bad->file, bad->name, 37, bad->value);
    for (int i = 0; i < 4; i++)
        harness.settings[i] = bad->settings[i];
    cr_expect_eq(harness_run(&harness, ranks, &out, &err), ERR_DATA, "%s: %s",
                 bad->expected, err.text);
    cr_expect_not_null(strstr(err.text, bad->expected), "\"%s\" lacks \"%s\"",
                       err.text, bad->expected);
    /* Do not search for "lr" alone: the random name of the directory may
     * contain it. */
    cr_expect_null(strstr(err.text, "optimizer's lr"), "%s", err.text);
    harness_close(&harness);
}

Test(inputs, a_number_that_is_none_is_named)
{
    const bad_case_t cases[] = {
        {"train.h5", "/x", NAN, {NULL}, "input holds nan in row 37 of "},
        {"train.h5", "/x", INFINITY, {NULL}, "input holds inf in row 37 of "},
        {"train.h5", "/x", -INFINITY, {NULL}, "train.h5:/x"},
        {"train.h5",
         "/x",
         3e38f,
         {"data.input.scale=10"},
         "input holds inf after x * 10 in row 37 of "},
        {"train.h5",
         "/x",
         NAN,
         {"train.reproducible=true"},
         "input holds nan in row 37 of "},
        {"train.h5",
         "/x",
         NAN,
         {"ddp.local_sgd={period: 2, start: 0}"},
         "input holds nan in row 37 of "},
        {"train.h5",
         "/z",
         NAN,
         {"data.target.path=/z", "loss=mse"},
         "target holds nan in row 37 of "},
        {"valid.h5", "/x", NAN, {NULL}, "input holds nan in row 37 of "},
        {"valid.h5", "/x", NAN, {"train.reproducible=true"}, "valid.h5:/x"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int ranks = 1; ranks <= 3; ranks += 2)
            check_bad(&cases[i], ranks);
}

/* The inputs are finite but the loss overflows: the message advises about the
 * learning rate. */
Test(inputs, a_run_that_diverges_on_good_data)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, 100);
    harness.settings[0] = "optimizer={sgd: {lr: 1.0e+6}}";
    harness.settings[1] = "schedule=constant";
    harness.settings[2] = "model.layers=[{linear: {out: 2}}]";
    harness.settings[3] = "data.input.scale=1.0e+34";
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    cr_assert_not_null(strstr(err.text, "lower the optimizer's lr"), "%s",
                       err.text);
    harness_close(&harness);
}
