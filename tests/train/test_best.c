/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint.best: the checkpoint of the best evaluation is written, is kept
 * while newer ones come and go, and is still known in a later start.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/checkpoint_best.h"
#include "train/harness.h"

#define SAMPLES 101
#define STEPS 20 /* 5 in an epoch */
#define EVALS 64

static const char *const ways[] = {"checkpoint.async=false",
                                   "checkpoint.async=true"};

/* Half of the labels are wrong, and come after the others in each epoch, so the
 * validation loss goes down and up. */
static void run_open(harness_t *harness, const char *async, const char *best)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = async;
    harness->settings[1] = best;
    harness->settings[2] = "checkpoint.keep=1";
    harness->settings[3] = "checkpoint.every=3 steps";
    harness->settings[4] = "train.epochs=4";
    harness->settings[5] = "train.batch=24";
    harness->settings[6] = "train.eval_every=1 steps";
    harness->settings[7] = "data.shuffle=none";
    for (int row = SAMPLES / 2; row < SAMPLES; row++)
        harness_label_set(harness, row, 1 - harness_label_get(harness, row));
}

static bool is_there(const harness_t *harness, int64_t step)
{
    char *path = str_printf("%s/run/checkpoints/step-%010lld", harness->dir,
                            (long long)step);
    const bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

static bool best_read(const harness_t *harness, hdf5io_best_t *out)
{
    char *home = str_printf("%s/run/checkpoints", harness->dir);
    const bool there = hdf5io_best_read(home, out);

    free(home);
    return there;
}

/* The step of the first one of the run's best evaluations. */
static int64_t best_of(const harness_t *harness, bool loss, double *value)
{
    double values[EVALS], steps[EVALS];
    const int count = harness_values(harness, true, loss ? "loss" : "accuracy",
                                     values, EVALS);
    int best = 0;

    cr_assert_gt(count, STEPS / 2);
    cr_assert_eq(harness_values(harness, true, "step", steps, EVALS), count);
    for (int i = 1; i < count; i++)
        if (loss ? values[i] < values[best] : values[i] > values[best])
            best = i;
    *value = values[best];
    return (int64_t)steps[best];
}

static void best_expect(const harness_t *harness, bool loss, const char *what)
{
    hdf5io_best_t best = {.step = -1};
    double value;
    const int64_t step = best_of(harness, loss, &value);

    cr_assert(best_read(harness, &best), "%s", what);
    cr_expect_eq(best.step, step, "%s: step %lld, not %lld", what,
                 (long long)best.step, (long long)step);
    cr_expect_float_eq(best.value, value, 1e-12);
    cr_expect_str_eq(best.metric, loss ? "valid_loss" : "valid_accuracy");
    cr_expect(is_there(harness, step), "%s: step %lld", what, (long long)step);
    cr_expect(is_there(harness, STEPS), "%s", what);
    cr_expect_lt(step, STEPS - 1, "%s: the test shows nothing", what);
}

Test(best, the_best_one_is_kept, .timeout = 240)
{
    for (int i = 0; i < 4; i++) {
        const bool loss = i >= 2;
        train_outcome_t out;
        harness_t harness;

        run_open(&harness, ways[i % 2],
                 loss ? "checkpoint.best=valid_loss"
                      : "checkpoint.best=valid_accuracy");
        harness_run_ok(&harness, 2, &out);
        best_expect(&harness, loss, ways[i % 2]);
        harness_close(&harness);
    }
}

/* A run in several starts finds the same one as a run in one. */
Test(best, later_starts_know_it, .timeout = 240)
{
    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t harness;

        run_open(&harness, ways[i], "checkpoint.best=valid_loss");
        cr_expect_gt(harness_run_interrupted(&harness, 25, (int[]){2, 1}, &out),
                     1);
        best_expect(&harness, true, ways[i]);
        harness_close(&harness);
    }
}

Test(best, without_evaluations_it_is_refused)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    run_open(&harness, ways[0], "checkpoint.best=valid_loss");
    harness.settings[8] = "data.valid=[]";
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG, "%s",
                 err.text);
    cr_expect_not_null(strstr(err.text, "checkpoint.best is valid_loss, but "),
                       "%s", err.text);
    harness_close(&harness);
}
