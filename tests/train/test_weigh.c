/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Losses whose denominator depends on the targets: the mean is over the
 * samples of all ranks, so the number of ranks does not change it, even if a
 * rank has no target that counts. Also runs over streams of numbers.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/harness.h"

/* Batches have 24 samples in the order of the file; the last has 5. */
#define SAMPLES 101
#define IGNORED 7

static const char weighted[] =
    "loss={cross_entropy: {weight: [1, 3], ignore_index: 7, "
    "label_smoothing: 0.1}}";

static void weigh_open(harness_t *harness, const char *loss)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "data.shuffle=none";
    harness->settings[1] = "model.layers=[{linear: {out: 2}}]";
    harness->settings[2] = loss;
    /* With 2 to 5 ranks, rank 0 has only ignored targets in the first step. */
    for (int i = 0; i < 14; i++)
        harness_label_set(harness, i, IGNORED);
    for (int i = 30; i < SAMPLES; i += 7)
        harness_label_set(harness, i, IGNORED);
}

Test(weigh, the_mean_is_over_all_ranks)
{
    double first[64] = {0};
    train_outcome_t one, out;

    for (int n = 1; n <= 5; n++) {
        double losses[64] = {0};
        harness_t harness;

        weigh_open(&harness, weighted);
        harness.settings[3] = n == 4 ? "train.accumulate=2" : NULL;
        harness_run_ok(&harness, n, &out);
        cr_assert_eq(harness_values(&harness, false, "loss", losses, 64), 15);
        if (n == 1) {
            one = out;
            memcpy(first, losses, sizeof first);
        }
        for (int i = 0; i < 15; i++)
            cr_assert_float_eq(losses[i], first[i], 1e-5,
                               "%d ranks, step %d: %g, alone %g", n, i + 1,
                               losses[i], first[i]);
        cr_assert_float_eq(out.loss, one.loss, 1e-5);
        harness_close(&harness);
    }
}

Test(weigh, plain_and_weighted_runs_differ)
{
    train_outcome_t one, two;
    harness_t harness;

    weigh_open(&harness, weighted);
    harness_run_ok(&harness, 1, &one);
    harness.settings[2] = "loss={cross_entropy: {ignore_index: 7}}";
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 1, &two);
    cr_expect_gt(fabs(one.loss - two.loss), 1e-3);
    harness_close(&harness);
}

/* Run the harness made by [open] in reproducible mode on 1 to 5 ranks, and
 * expect losses with equal bits. settings[free] and those after it are free for
 * this function. */
static void expect_same_bits(void (*open)(harness_t *harness), int free)
{
    train_outcome_t one, out;

    for (int n = 1; n <= 5; n++) {
        harness_t harness;

        open(&harness);
        harness.settings[free] = "train.reproducible=true";
        harness.settings[free + 1] = "train.microbatch=5";
        harness.settings[free + 2] = n == 3 ? "train.threads=2" : NULL;
        harness_run_ok(&harness, n, &out);
        if (n == 1)
            one = out;
        cr_expect_eq(memcmp(&out.loss, &one.loss, sizeof out.loss), 0,
                     "%d ranks: %.17g, alone %.17g", n, out.loss, one.loss);
        harness_close(&harness);
    }
}

static void weighted_open(harness_t *harness)
{
    weigh_open(harness, weighted);
}

Test(weigh, reproducible_runs_have_the_same_bits)
{
    expect_same_bits(weighted_open, 3);
}

/* ---- targets that are probabilities -------------------------------------- */

static void soft_open(harness_t *harness, const char *loss, const char *target)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "data.shuffle=none";
    harness->settings[1] = "model.layers=[{linear: {out: 2}}]";
    harness->settings[2] = loss;
    harness->settings[3] = target;
}

/* The right class has probability 0.8, the other one 0.2. */
static const char soft_target[] =
    "data.target={path: /h, scale: 0.6, shift: 0.2}";

/* These probabilities are those of label_smoothing 0.4. */
Test(weigh, probabilities_are_what_smoothed_classes_are)
{
    static const char *const hard[] = {
        "loss={cross_entropy: {label_smoothing: 0.4}}",
        "loss={cross_entropy: {label_smoothing: 0.7}}"};
    static const char *const soft[] = {
        "loss={cross_entropy: {soft_target: true}}",
        "loss={cross_entropy: {soft_target: true, label_smoothing: 0.5}}"};

    for (int k = 0; k < 2; k++) {
        double losses[2][64] = {{0}};
        train_outcome_t out[2];
        harness_t harness;

        for (int i = 0; i < 2; i++) {
            soft_open(&harness, i == 0 ? hard[k] : soft[k],
                      i == 0 ? NULL : soft_target);
            harness_run_ok(&harness, 2, &out[i]);
            cr_assert_eq(harness_values(&harness, false, "loss", losses[i], 64),
                         15);
            harness_close(&harness);
        }
        for (int i = 0; i < 15; i++)
            cr_expect_float_eq(losses[0][i], losses[1][i], 1e-6, "%d: %g, %g",
                               i, losses[0][i], losses[1][i]);
        cr_expect_eq(out[0].accuracy, out[1].accuracy);
        cr_expect_gt(out[1].accuracy, 0.6);
    }
}

static const char soft_everything[] =
    "loss={cross_entropy: {soft_target: true, weight: [1, 3], "
    "label_smoothing: 0.1}}";

Test(weigh, probabilities_have_the_same_mean_on_all_ranks)
{
    double first[64] = {0};

    for (int n = 1; n <= 5; n++) {
        double losses[64] = {0};
        train_outcome_t out;
        harness_t harness;

        soft_open(&harness, soft_everything, soft_target);
        harness.settings[4] = n == 4 ? "train.accumulate=2" : NULL;
        harness_run_ok(&harness, n, &out);
        cr_assert_eq(harness_values(&harness, false, "loss", losses, 64), 15);
        if (n == 1)
            memcpy(first, losses, sizeof first);
        for (int i = 0; i < 15; i++)
            cr_expect_float_eq(losses[i], first[i], 1e-5, "%d ranks, step %d",
                               n, i + 1);
        harness_close(&harness);
    }
}

static void probabilities_open(harness_t *harness)
{
    soft_open(harness, soft_everything, soft_target);
}

Test(weigh, reproducible_runs_on_probabilities_have_the_same_bits)
{
    expect_same_bits(probabilities_open, 4);
}

/* ---- nothing that counts ------------------------------------------------- */

/* No target counts in any step: the weights do not change, whatever the
 * optimizer would do with a gradient of zeros. */
Test(weigh, steps_without_a_target_change_nothing)
{
    for (int mode = 0; mode < 2; mode++) {
        double losses[64] = {0};
        train_outcome_t one, two;
        harness_t harness;

        weigh_open(&harness, weighted);
        for (int i = 0; i < SAMPLES; i++)
            harness_label_set(&harness, i, IGNORED);
        harness.settings[3] = "optimizer={adamw: {lr: 0.1, weight_decay: 0.9}}";
        harness.settings[4] =
            mode == 1 ? "train.reproducible=true" : "train.accumulate=1";
        harness_run_ok(&harness, 3, &one);
        cr_assert_eq(harness_values(&harness, false, "loss", losses, 64), 15);
        for (int i = 0; i < 15; i++)
            cr_assert(isnan(losses[i]));
        harness.settings[3] = "optimizer={sgd: {lr: 1.0e-30}}";
        harness.settings[5] = "train.epochs=1";
        harness.resume = TRAIN_RESUME_FRESH;
        harness_run_ok(&harness, 3, &two);
        cr_assert_eq(one.loss, two.loss, "%.17g, untrained %.17g", one.loss,
                     two.loss);
        harness_close(&harness);
    }
}

/* ---- streams --------------------------------------------------------------
 */

/* The labels as one stream of 101 numbers, read as 9 samples of 11 numbers. */
static void stream_open(harness_t *harness)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "data.target=";
    harness->settings[1] = "data.input.path=/y";
    harness->settings[2] = "data.sequence=11";
    harness->settings[3] = "model.input=[11]";
    harness->settings[4] =
        "model.layers=[{reshape: {shape: [11, 1]}}, {linear: "
        "{out: 2, flatten: false}}]";
    harness->settings[5] = "train.batch=4";
}

Test(weigh, streams_are_shuffled_dealt_and_resumed)
{
    train_outcome_t one, out;
    harness_t harness;
    err_t err = ERR_INIT;

    stream_open(&harness);
    harness_run_ok(&harness, 1, &one);
    cr_assert_eq(one.step, 9, "9 samples are 3 steps an epoch");
    cr_assert_gt(one.accuracy, 0.2);
    cr_assert_leq(one.accuracy, 1);
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 3, &out);
    cr_assert_float_eq(out.loss, one.loss, 1e-5);
    harness_interrupt(&harness, 5);
    cr_assert_eq(harness_run(&harness, 1, &out, &err), ERR_REQUEUE);
    harness.signal = NULL;
    harness.resume = TRAIN_RESUME_AUTO;
    harness_run_ok(&harness, 1, &out);
    cr_assert_eq(out.loss, one.loss);
    harness_close(&harness);
}
