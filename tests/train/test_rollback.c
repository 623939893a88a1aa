/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Runs that go back when training diverges. The training data is read in the
 * order of the file, and a step with one bad sample of it diverges.
 */
#include <criterion/criterion.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "train/harness.h"

/* A batch has 24 samples, so an epoch has 5 steps, and the last one has 22
 * samples. Samples 48 to 71 are those of the third step. */
enum { SAMPLES = 118, STEPS = 5, BAD = 60, LONG_SAMPLES = 960 };

static void add(harness_t *harness, const char *setting)
{
    int at = 0;

    while (harness->settings[at] != NULL)
        at++;
    harness->settings[at] = setting;
    harness->settings[at + 1] = NULL;
}

static void samples_open(harness_t *harness, int samples)
{
    harness_open(harness, samples);
    add(harness, "data.shuffle=none");
    add(harness, "model.layers=[{linear: {out: 16}}, relu, "
                 "{dropout: {rate: 0.1}}, {linear: {out: 2}}]");
    add(harness, "loss={cross_entropy: {ignore_index: 5}}");
    add(harness, "checkpoint.every=1 steps");
    add(harness, "fault.diverge=rollback");
}

/* A run with one bad sample, in the third step of each epoch. */
static void bad_open(harness_t *harness)
{
    samples_open(harness, SAMPLES);
    harness_input_set(harness, BAD, FLT_MAX);
}

/* A run in which the samples of the third step have no target: this step is
 * counted, but changes no parameter. */
static void ignored_open(harness_t *harness)
{
    samples_open(harness, SAMPLES);
    for (int i = 48; i < 72; i++)
        harness_label_set(harness, i, 5);
}

static void losses_compare(const harness_t *a, const harness_t *b)
{
    double x[64], y[64];
    const int count = harness_values(a, false, "loss", x, 64);

    cr_assert_gt(count, 0);
    cr_assert_eq(harness_values(b, false, "loss", y, 64), count);
    cr_expect_arr_eq(x, y, (size_t)count * sizeof *x);
}

static void expect_diverged(const harness_t *harness, int ranks, int rollbacks,
                            const char *said)
{
    train_outcome_t out;
    err_t err = ERR_INIT;

    cr_expect_eq(harness_run(harness, ranks, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    cr_expect_not_null(strstr(err.text, said), "%s", err.text);
    cr_expect_eq(harness_events(harness, "rollback"), rollbacks);
}

/* ---- the samples are left out -------------------------------------------- */

/* Compare with a run in which the samples of the same step have no target. */
static void check_left_out(int ranks, const char *setting)
{
    harness_t bad, ignored;
    train_outcome_t out;
    double steps[64];

    bad_open(&bad);
    ignored_open(&ignored);
    add(&bad, setting);
    add(&ignored, setting);
    harness_run_ok(&bad, ranks, &out);
    cr_expect_eq(out.step, 3 * STEPS);
    harness_run_ok(&ignored, ranks, &out);
    harness_compare(&bad, &ignored, 3 * STEPS, 0, setting);
    cr_expect_eq(harness_events(&bad, "rollback"), 3);
    cr_expect_eq(harness_events(&bad, "first_step"), 1);
    cr_expect_eq(harness_events(&ignored, "rollback"), 0);
    cr_assert_eq(harness_values(&bad, false, "step", steps, 64), 3 * STEPS - 3);
    cr_expect_eq(steps[2], 4, "step 3 has a row");
    harness_close(&ignored);
    harness_close(&bad);
}

Test(rollback, leaves_out_the_samples_of_the_step, .timeout = 240)
{
    check_left_out(1, "data.prefetch=2");
    check_left_out(2, "data.prefetch=0");
    check_left_out(3, "ddp.zero=1");
}

Test(rollback, leaves_them_out_on_a_device, .timeout = 240)
{
    check_left_out(1, "train.device=far");
    check_left_out(2, "train.device=far");
}

/* The bad step is the last one of an epoch, and the checkpoint before it is
 * some steps back. So good steps are done again, and must still have one row
 * each. */
static void check_far_back(const char *device)
{
    harness_t bad, ignored;
    train_outcome_t out;
    double steps[64];

    samples_open(&bad, SAMPLES);
    samples_open(&ignored, SAMPLES);
    harness_input_set(&bad, SAMPLES - 1, FLT_MAX);
    for (int i = 96; i < SAMPLES; i++)
        harness_label_set(&ignored, i, 5);
    add(&bad, "checkpoint.every=4 steps");
    add(&bad, device);
    add(&ignored, "checkpoint.every=4 steps");
    harness_run_ok(&bad, 2, &out);
    harness_run_ok(&ignored, 2, &out);
    harness_compare(&bad, &ignored, 3 * STEPS, 0, device);
    cr_expect_eq(harness_events(&bad, "rollback"), 3);
    cr_assert_eq(harness_values(&bad, false, "step", steps, 64), 3 * STEPS - 3);
    for (int i = 0; i < 3 * (STEPS - 1); i++)
        cr_expect_eq(steps[i], i + 1 + i / (STEPS - 1), "row %d is of step %g",
                     i, steps[i]);
    harness_close(&ignored);
    harness_close(&bad);
}

Test(rollback, goes_back_over_epochs, .timeout = 240)
{
    check_far_back("train.device=cpu");
    check_far_back("train.device=far");
}

/* ---- the same bits ------------------------------------------------------- */

static void reproducible_open(harness_t *harness)
{
    bad_open(harness);
    add(harness, "train.reproducible=true");
    add(harness, "train.microbatch=4");
    add(harness, "fault.spike=50");
}

Test(rollback, has_the_same_bits_on_any_ranks, .timeout = 240)
{
    harness_t one, more;
    train_outcome_t out;

    reproducible_open(&one);
    harness_run_ok(&one, 1, &out);
    cr_expect_eq(harness_events(&one, "rollback"), 3);
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        reproducible_open(&more);
        harness_run_ok(&more, ranks, &out);
        harness_compare(&one, &more, 3 * STEPS, 0, "ranks");
        losses_compare(&one, &more);
        cr_expect_eq(harness_events(&more, "rollback"), 3);
        harness_close(&more);
    }
    harness_close(&one);
}

Test(rollback, has_the_same_bits_when_interrupted, .timeout = 240)
{
    static const int lives[2][2] = {{1, 2}, {4, 1}};
    harness_t whole, parts;
    train_outcome_t out;

    reproducible_open(&whole);
    harness_run_ok(&whole, 2, &out);
    for (int i = 0; i < 2; i++) {
        reproducible_open(&parts);
        cr_expect_gt(harness_run_interrupted(&parts, 9 + 4 * i, lives[i], &out),
                     2);
        harness_compare(&whole, &parts, 3 * STEPS, 0, "interrupted");
        losses_compare(&whole, &parts);
        harness_close(&parts);
    }
    harness_close(&whole);
}

/* ---- spikes -------------------------------------------------------------- */

/* The 31st of 40 steps has a sample of the wrong class whose loss is finite,
 * but large. */
static void spike_open(harness_t *harness, const char *diverge)
{
    samples_open(harness, LONG_SAMPLES);
    harness_input_set(harness, 30 * 24 + 5, 1e4F);
    harness_label_set(harness, 30 * 24 + 5, 0);
    add(harness, "train.epochs=1");
    add(harness, "train.reproducible=true");
    add(harness, "train.microbatch=8");
    add(harness, "fault.spike=20");
    add(harness, "checkpoint.every=6 steps");
    add(harness, diverge);
}

Test(rollback, a_spike_is_seen_on_any_ranks, .timeout = 240)
{
    static const int lives[2] = {2, 1};
    harness_t one, other;
    train_outcome_t out;

    spike_open(&one, "fault.diverge=rollback");
    harness_run_ok(&one, 1, &out);
    cr_expect_eq(harness_events(&one, "rollback"), 1);
    spike_open(&other, "fault.diverge=rollback");
    harness_run_ok(&other, 4, &out);
    harness_compare(&one, &other, 40, 0, "spike");
    losses_compare(&one, &other);
    harness_close(&other);
    spike_open(&other, "fault.diverge=rollback");
    cr_expect_gt(harness_run_interrupted(&other, 21, lives, &out), 2);
    harness_compare(&one, &other, 40, 0, "spike, interrupted");
    losses_compare(&one, &other);
    harness_close(&other);
    harness_close(&one);
}

Test(rollback, a_spike_stops_a_run_that_does_not_go_back)
{
    harness_t harness;

    spike_open(&harness, "fault.diverge=stop");
    expect_diverged(&harness, 2, 0, "standard deviations");
    harness_close(&harness);
}

/* ---- it ends ------------------------------------------------------------- */

Test(rollback, a_run_goes_back_only_so_often)
{
    harness_t harness;
    train_outcome_t out;

    bad_open(&harness);
    add(&harness, "train.epochs=4");
    expect_diverged(&harness, 2, 3, "fault.rollbacks is 3");
    /* With one more rollback allowed, the same run goes on. */
    add(&harness, "fault.rollbacks=4");
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(out.step, 4 * STEPS);
    harness_close(&harness);
}

Test(rollback, there_is_nothing_to_go_back_to)
{
    harness_t harness;

    bad_open(&harness);
    add(&harness, "checkpoint.every=3 steps");
    expect_diverged(&harness, 2, 0, "none to go back to");
    harness_close(&harness);
}

Test(rollback, the_default_is_to_stop)
{
    harness_t harness;

    bad_open(&harness);
    add(&harness, "fault.diverge=stop");
    expect_diverged(&harness, 2, 0, "lower the optimizer's lr");
    harness_close(&harness);
}

/* Finite gradients whose squares are infinite spoil the optimizer's state,
 * although the loss and the norm are finite. */
Test(rollback, gradients_may_be_too_large)
{
    harness_t harness;
    train_outcome_t out;

    samples_open(&harness, SAMPLES);
    harness_input_set(&harness, BAD, 1e25F);
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(harness_events(&harness, "rollback"), 3);
    harness_close(&harness);
}

Test(rollback, local_sgd_is_refused)
{
    harness_t harness;
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    samples_open(&harness, SAMPLES);
    add(&harness, "ddp.local_sgd={period: 2, start: 0}");
    cr_expect_eq(harness_config(&harness, &tree, &config, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "fault.diverge"), "%s", err.text);
    tree_free(tree);
    harness_close(&harness);
}
