/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A step in which no target counts makes no update and does not change the
 * optimizer's state. A run over a file whose first batch is ignored as a whole
 * ends with the bits of a run over a file without that batch, moving average
 * included.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/harness.h"

#define SAMPLES 96
#define BATCH 24
#define IGNORED 7

static const char *const base[] = {"data.shuffle=none",
                                   "model.layers=[{linear: {out: 2}}]",
                                   "loss={cross_entropy: {ignore_index: 7}}",
                                   "schedule=constant", "train.epochs=1"};

enum { BASE = sizeof base / sizeof base[0], MORE_MAX = 4 };

static void updates_open(harness_t *harness, const char *const more[MORE_MAX])
{
    int count = 0;

    harness_open(harness, SAMPLES);
    for (int i = 0; i < BASE; i++)
        harness->settings[count++] = base[i];
    for (int i = 0; i < MORE_MAX && more[i] != NULL; i++)
        harness->settings[count++] = more[i];
}

/* Mark the targets of the first batch as ignored. */
static void ignore_first(const harness_t *harness)
{
    for (int i = 0; i < BATCH; i++)
        harness_label_set(harness, i, IGNORED);
}

/* Remove the rows of the first batch from dataset [name], whose rows have
 * [columns] numbers. */
static void set_cut(hid_t file, const char *name, hid_t type, int columns)
{
    const hsize_t dims[2] = {SAMPLES - BATCH, (hsize_t)columns};
    char *all = malloc((size_t)SAMPLES * (size_t)columns * 4);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space;

    cr_assert_geq(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all), 0);
    H5Dclose(set);
    cr_assert_geq(H5Ldelete(file, name, H5P_DEFAULT), 0);
    space = H5Screate_simple(columns > 1 ? 2 : 1, dims, NULL);
    set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                     H5P_DEFAULT);
    cr_assert_geq(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                           all + (size_t)BATCH * (size_t)columns * 4),
                  0);
    H5Dclose(set);
    H5Sclose(space);
    free(all);
}

static void cut_first(const harness_t *harness)
{
    char path[300];
    hid_t file;

    snprintf(path, sizeof path, "%s/train.h5", harness->dir);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert_geq(file, 0);
    set_cut(file, "/x", H5T_NATIVE_FLOAT, HARNESS_FEATURES);
    set_cut(file, "/y", H5T_NATIVE_INT, 1);
    H5Fclose(file);
}

typedef struct row {
    const char *what;
    int ranks;
    const char *more[MORE_MAX];
    const char *other; /* replaces more[1] in the run without the batch */
} row_t;

static const row_t rows[] = {
    {"adam", 1, {"optimizer={adam: {lr: 0.1}}"}, NULL},
    {"adamw, average",
     2,
     {"optimizer={adamw: {lr: 0.1}}", "ema.decay=0.9"},
     NULL},
    {"lamb, average, shards",
     3,
     {"optimizer={lamb: {lr: 0.1}}", "ddp.zero=1", "ema.decay=0.9"},
     NULL},
    {"adamw, average, reproducible",
     2,
     {"optimizer={adamw: {lr: 0.1}}", "train.reproducible=true",
      "train.microbatch=6", "ema.decay=0.9"},
     NULL},
    {"adam, average, local",
     2,
     {"optimizer={adam: {lr: 0.1}}", "ddp.local_sgd={period: 2, start: 1}",
      "ema.decay=0.9"},
     "ddp.local_sgd={period: 2, start: 0}"}};

Test(updates, a_step_without_a_target_leaves_no_trace, .timeout = 120)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        harness_t skips, cut;
        train_outcome_t out;

        updates_open(&skips, rows[i].more);
        ignore_first(&skips);
        harness_run_ok(&skips, rows[i].ranks, &out);
        cr_assert_eq(out.step, 4);
        updates_open(&cut, rows[i].more);
        if (rows[i].other != NULL)
            cut.settings[BASE + 1] = rows[i].other;
        cut_first(&cut);
        harness_run_ok(&cut, rows[i].ranks, &out);
        cr_assert_eq(out.step, 3);
        harness_compare(&skips, &cut, -1, 0, rows[i].what);
        harness_close(&cut);
        harness_close(&skips);
    }
}

/* The number of updates is stored in the checkpoint: a run that is stopped goes
 * on with the same bits. With local SGD, the last row, a stop adds an average,
 * so bits differ there and the run only has to end. In one step of that run one
 * rank has no target while the other has some. */
Test(updates, are_counted_over_lives, .timeout = 120)
{
    for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++) {
        harness_t straight, stopped;
        train_outcome_t out;
        err_t err = ERR_INIT;

        updates_open(&straight, rows[i].more);
        updates_open(&stopped, rows[i].more);
        ignore_first(&straight);
        ignore_first(&stopped);
        for (int k = BATCH; k < BATCH + BATCH / 2; k++) {
            harness_label_set(&straight, k, IGNORED);
            harness_label_set(&stopped, k, IGNORED);
        }
        harness_run_ok(&straight, 2, &out);
        harness_interrupt(&stopped, 4);
        cr_assert_eq(harness_run(&stopped, 2, &out, &err), ERR_REQUEUE, "%s",
                     err.text);
        cr_assert_lt(out.step, 4);
        stopped.signal = NULL;
        harness_run_ok(&stopped, 2, &out);
        if (i + 1 < sizeof rows / sizeof rows[0])
            harness_compare(&straight, &stopped, 4, 0, rows[i].what);
        harness_close(&stopped);
        harness_close(&straight);
    }
}
