/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Runs whose schedule watches a metric: the rate is cut when it should be, on
 * any number of ranks; an interrupted run ends with the bits of an
 * uninterrupted one; a metric that cannot be watched is refused.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "train/harness.h"

/* Batches have 24 samples; the last has 5. */
#define SAMPLES 101
#define STEPS 15

static void plateau_open(harness_t *harness, const char *schedule,
                         const char *every)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "optimizer={sgd: {lr: 0.1, momentum: 0.9}}";
    harness->settings[1] = schedule;
    harness->settings[2] = every;
}

/* No improvement is ever large enough, so every evaluation cuts the rate. */
#define NEVER_GOOD                                                         \
    "schedule={plateau: {patience: 0, factor: 0.5, threshold: 1, min_lr: " \
    "0.01}}"

static void expect_rates(const harness_t *harness, const double *expected)
{
    double lr[STEPS];

    cr_assert_eq(harness_values(harness, false, "lr", lr, STEPS), STEPS);
    for (int i = 0; i < STEPS; i++)
        cr_expect_float_eq(lr[i], expected[i], 1e-9, "step %d: %g, not %g", i,
                           lr[i], expected[i]);
}

Test(plateau, cuts_the_rate_after_evaluations)
{
    const double expected[STEPS] = {0.1,   0.1,   0.1,    0.1,    0.1,
                                    0.1,   0.05,  0.05,   0.05,   0.025,
                                    0.025, 0.025, 0.0125, 0.0125, 0.0125};
    train_outcome_t out;
    harness_t harness;

    for (int n = 1; n <= 3; n++) {
        plateau_open(&harness, NEVER_GOOD, "train.eval_every=3 steps");
        harness_run_ok(&harness, n, &out);
        expect_rates(&harness, expected);
        harness_close(&harness);
    }
}

Test(plateau, watches_the_training_of_epochs)
{
    const double expected[STEPS] = {0.1, 0.1, 0.1,  0.1,  0.1,  0.1,  0.1, 0.1,
                                    0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05};
    train_outcome_t out;
    harness_t harness;

    plateau_open(&harness,
                 "schedule={plateau: {metric: train_loss, patience: 0, factor: "
                 "0.5, threshold: 1}}",
                 "train.eval_every=never");
    harness.settings[3] = "data.valid=[]";
    harness_run_ok(&harness, 2, &out);
    expect_rates(&harness, expected);
    harness_close(&harness);
}

/* Interrupted at different looks for a signal, some of them inside evaluations.
 * An evaluation looks six times, so each life must be longer than that. */
Test(plateau, an_interrupted_run_ends_with_the_same_bits, .timeout = 240)
{
    static const char *const every[] = {"train.eval_every=2 steps",
                                        "train.eval_every=5 steps",
                                        "train.eval_every=1 epoch"};
    static const char *const schedules[] = {
        NEVER_GOOD,
        "schedule={plateau: {metric: accuracy, patience: 0, factor: 0.5, "
        "cooldown: 1}}",
        "schedule={plateau: {metric: train_loss, patience: 0, factor: 0.5, "
        "threshold: 1}}"};
    const int lives[2] = {2, 2};

    for (int i = 0; i < 3; i++) {
        harness_t whole;
        train_outcome_t out;

        plateau_open(&whole, schedules[i], every[i]);
        harness_run_ok(&whole, 2, &out);
        for (int looks = 9; looks <= 15; looks += 2) {
            harness_t parts;

            plateau_open(&parts, schedules[i], every[i]);
            cr_expect_gt(harness_run_interrupted(&parts, looks, lives, &out),
                         2);
            harness_compare(&whole, &parts, STEPS, 0, every[i]);
            harness_close(&parts);
        }
        harness_close(&whole);
    }
}

/* The checkpoint is from a run that watched no metric: the schedule begins
 * there, with a message. The next life finds the schedule's state in the
 * checkpoint and goes on without a message. The last step of a life is
 * evaluated, too. */
Test(plateau, begins_where_a_checkpoint_holds_nothing_of_it)
{
    static const char sentence[] =
        "schedule.plateau: the checkpoint has no record of loss";
    const double expected[STEPS] = {0.1,   0.1,   0.1,    0.1,    0.1,
                                    0.1,   0.1,   0.1,    0.1,    0.05,
                                    0.025, 0.025, 0.0125, 0.0125, 0.0125};
    const char *const epochs[] = {"train.epochs=1", "train.epochs=2",
                                  "train.epochs=3"};
    train_outcome_t out;
    harness_t harness;

    plateau_open(&harness, "schedule=constant", "train.eval_every=3 steps");
    harness.settings[3] = epochs[0];
    harness_run_ok(&harness, 2, &out);
    harness.settings[1] = NEVER_GOOD;
    for (int life = 1; life <= 2; life++) {
        char *said;

        harness.settings[3] = epochs[life];
        said = harness_listen(&harness, 2);
        cr_expect_eq(strstr(said, sentence) != NULL, life == 1, "%s", said);
        free(said);
    }
    expect_rates(&harness, expected);
    harness_close(&harness);
}

static const struct {
    const char *schedule, *more, *sentence;
} refusals[] = {
    {"schedule=plateau", "data.valid=[]", "there are none without data.valid"},
    {"schedule=plateau", "train.eval_every=never", "train.eval_every is never"},
    {"schedule=plateau", "ddp.local_sgd={period: 2}",
     "schedule.plateau and ddp.local_sgd are both set"},
    {"schedule={plateau: {metric: acuracy}}", NULL,
     "schedule.plateau.metric is acuracy, but an evaluation of this run has no "
     "number of that name (there: loss, accuracy"},
};

Test(plateau, refuses_what_cannot_be_watched)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        harness_t harness;
        train_outcome_t out;
        err_t err = ERR_INIT;

        plateau_open(&harness, refusals[i].schedule, refusals[i].more);
        cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
        cr_expect_not_null(strstr(err.text, refusals[i].sentence), "%s",
                           err.text);
        harness_close(&harness);
    }
}
