/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Local SGD: runs learn. Ranks are equal exactly after they average, and only
 * then does the run evaluate, check or save. A run that is stopped has equal
 * ranks.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "train/harness.h"

/* 101 samples in batches of 24: 5 steps an epoch, 15 in all. */
#define SAMPLES 101

static void local_open(harness_t *harness, const char *local)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = local;
    harness->settings[1] = "ddp.check_every=1 steps";
}

static char *metrics_read(const harness_t *harness)
{
    char *path = str_printf("%s/run/metrics.jsonl", harness->dir);
    err_t err = ERR_INIT;
    char *text = NULL;

    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    free(path);
    return text;
}

/* The number that follows [key] in the row of step [step]. */
static double metric(const char *text, int step, const char *key)
{
    char *row = str_printf("{\"step\": %d,", step);
    char *mark = str_printf("\"%s\": ", key);
    const char *at = strstr(text, row);

    cr_assert_not_null(at, "no step %d", step);
    at = strstr(at, mark);
    cr_assert_not_null(at, "no %s", key);
    at += strlen(mark);
    free(mark);
    free(row);
    return strtod(at, NULL);
}

Test(local_sgd, runs_learn_and_ranks_agree, .timeout = 60)
{
    const char *const ways[] = {"ddp.local_sgd={period: 4}",
                                "ddp.local_sgd={period: 2, start: 7}",
                                "ddp.local_sgd={period: 100}"};

    for (int w = 0; w < 3; w++)
        for (int ranks = 1; ranks <= 5; ranks++) {
            train_outcome_t out;
            harness_t harness;

            local_open(&harness, ways[w]);
            harness_run_ok(&harness, ranks, &out);
            cr_assert_gt(out.accuracy, 0.9, "%s, %d ranks: %g", ways[w], ranks,
                         out.accuracy);
            cr_assert_eq(out.step, 15);
            harness_close(&harness);
        }
}

/* With equal shares and plain SGD without clipping, averaging the weights after
 * every update equals one update with the mean of the gradients. */
Test(local_sgd, averaging_at_each_step_is_the_plain_run)
{
    train_outcome_t plain, local;
    harness_t harness;

    harness_open(&harness, 96);
    harness.settings[0] = "optimizer={sgd: {lr: 0.1, momentum: 0.9}}";
    harness_run_ok(&harness, 3, &plain);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[1] = "ddp.local_sgd={period: 1}";
    harness_run_ok(&harness, 3, &local);
    cr_assert_float_eq(local.loss, plain.loss, 1e-5 * plain.loss, "%.9g %.9g",
                       local.loss, plain.loss);
    /* With fewer averages the results differ. */
    harness.settings[1] = "ddp.local_sgd={period: 4}";
    harness_run_ok(&harness, 3, &local);
    cr_assert_gt(fabs(local.loss - plain.loss), 1e-5 * plain.loss);
    harness_close(&harness);
}

/* Steps before [start] are those of a run without local SGD; a run that ends
 * before [start] has the same bits. */
Test(local_sgd, starts_where_it_is_told)
{
    train_outcome_t plain, local;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &plain);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "ddp.local_sgd={period: 4, start: 15}";
    harness_run_ok(&harness, 2, &local);
    cr_assert_eq(memcmp(&plain.loss, &local.loss, sizeof(double)), 0);
    harness.settings[0] = "ddp.local_sgd={period: 4, start: 14}";
    harness_run_ok(&harness, 2, &local);
    cr_assert_neq(memcmp(&plain.loss, &local.loss, sizeof(double)), 0);
    harness_close(&harness);
}

Test(local_sgd, gradients_do_not_travel_between_averages)
{
    train_outcome_t out;
    harness_t harness;
    char *text;

    local_open(&harness, "ddp.local_sgd={period: 4, start: 2}");
    harness_run_ok(&harness, 2, &out);
    text = metrics_read(&harness);
    /* A gradient has some 300 numbers; the state of AdamW is twice as large. */
    for (int step = 1; step <= 15; step++) {
        double bytes = metric(text, step, "comm_bytes");

        if (step <= 2)
            cr_assert_gt(bytes, 1000, "step %d: %g", step, bytes);
        else if (step == 6 || step == 10 || step == 14 || step == 15)
            cr_assert_gt(bytes, 3000, "step %d: %g", step, bytes);
        else
            cr_assert_lt(bytes, 700, "step %d: %g", step, bytes);
    }
    free(text);
    harness_close(&harness);
}

static bool checkpoint_there(const harness_t *harness, int step)
{
    char *path =
        str_printf("%s/run/checkpoints/step-%010d", harness->dir, step);
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

/* Epochs end at steps 5, 10 and 15; ranks average after steps 4, 8, 12 and the
 * last. */
Test(local_sgd, what_is_due_waits_for_an_average)
{
    train_outcome_t out;
    harness_t harness;
    int evals = 0;
    char *text;

    local_open(&harness, "ddp.local_sgd={period: 4}");
    harness.settings[2] = "checkpoint.every=1 epoch";
    harness_run_ok(&harness, 2, &out);
    for (int step = 1; step <= 15; step++)
        cr_assert_eq(checkpoint_there(&harness, step),
                     step == 8 || step == 12 || step == 15, "step %d", step);
    text = metrics_read(&harness);
    for (const char *at = text; (at = strstr(at, "\"eval\"")) != NULL; at++)
        evals++;
    cr_assert_eq(evals, 3, "%s", text);
    cr_assert_not_null(strstr(text, "\"event\": \"eval\", \"step\": 8,"), "%s",
                       text);
    cr_assert_not_null(strstr(text, "\"event\": \"eval\", \"step\": 12,"));
    free(text);
    harness_close(&harness);
}

/* ---- stopping ------------------------------------------------------------ */

/* Each of two ranks looks for a signal once a step. At whichever look they are
 * stopped, they average first (a replica check follows), and the run goes on,
 * on any number of ranks. */
Test(local_sgd, a_signal_finds_ranks_equal, .timeout = 60)
{
    for (int step = 2; step <= 6; step++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;

        local_open(&harness, "ddp.local_sgd={period: 4}");
        harness.settings[2] = "data.valid=[]";
        harness_interrupt(&harness, 2 * step - 1);
        cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_REQUEUE);
        cr_assert_eq(out.step, step);
        cr_assert(checkpoint_there(&harness, step));
        harness.signal = NULL;
        harness_run_ok(&harness, step, &out);
        cr_assert_eq(out.step, 15);
        harness_close(&harness);
    }
}

Test(local_sgd, stopped_at_an_average_the_bits_are_the_same)
{
    train_outcome_t straight, stopped;
    harness_t harness;
    err_t err = ERR_INIT;

    local_open(&harness, "ddp.local_sgd={period: 3}");
    harness.settings[2] = "train.eval_every=never";
    harness_run_ok(&harness, 2, &straight);
    harness_close(&harness);
    local_open(&harness, "ddp.local_sgd={period: 3}");
    harness.settings[2] = "train.eval_every=never";
    harness_interrupt(&harness, 2 * 6 - 1);
    cr_assert_eq(harness_run(&harness, 2, &stopped, &err), ERR_REQUEUE);
    cr_assert_eq(stopped.step, 6);
    harness.signal = NULL;
    harness_run_ok(&harness, 2, &stopped);
    cr_assert_eq(memcmp(&stopped.loss, &straight.loss, sizeof(double)), 0,
                 "%.17g, not %.17g", stopped.loss, straight.loss);
    harness_close(&harness);
}

/* ---- what goes wrong on one rank ----------------------------------------- */

/* Set all inputs of row [row] in train.h5 to [value]. */
static void input_set(const harness_t *harness, int row, float value)
{
    char *path = str_printf("%s/train.h5", harness->dir);
    hsize_t start[2] = {(hsize_t)row, 0}, count[2] = {1, HARNESS_FEATURES};
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/x", H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    hid_t memory = H5Screate_simple(2, count, NULL);
    float values[HARNESS_FEATURES];

    for (int i = 0; i < HARNESS_FEATURES; i++)
        values[i] = value;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    cr_assert_geq(
        H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values), 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    free(path);
}

/* An error of 1e20 has a finite loss, but its gradient overflows float32. Only
 * one rank has that sample; the others must not go on alone. */
Test(local_sgd, a_gradient_that_is_no_number_ends_all_ranks)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    local_open(&harness, "ddp.local_sgd={period: 4}");
    harness.settings[2] = "model.layers=[{linear: {out: 1}}]";
    harness.settings[3] = "loss=mse";
    harness.settings[4] = "data.shuffle=none";
    input_set(&harness, 30, 1e20f);
    cr_assert_eq(harness_run(&harness, 3, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    cr_assert_not_null(strstr(err.text, "the gradient's norm became"), "%s",
                       err.text);
    cr_assert_not_null(strstr(err.text, "rank 0 on"), "%s", err.text);
    harness_close(&harness);
}

Test(local_sgd, ranks_without_samples_keep_what_they_have)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, 3);
    harness.settings[0] = "ddp.local_sgd={period: 2}";
    harness.settings[1] = "ddp.check_every=1 steps";
    harness.settings[2] = "model.layers=[{linear: {out: 8}}, layernorm, relu, "
                          "{linear: {out: 2}}]";
    harness_run_ok(&harness, 6, &out);
    cr_assert_eq(out.step, 3);
    harness_close(&harness);
}
