/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint.best: the checkpoint of the best evaluation is written, is kept
 * while newer ones come and go, and is still known in a later start.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/checkpoint_io.h"
#include "train/best.h"
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
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_best_read(&hdf5io_io_system, home, out, &err), ERR_OK,
                 "%s", err.text);
    free(home);
    return out->step >= 0;
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

/* ---- saves that fail ----------------------------------------------------- */

/* A part of the path of the files that cannot be synced. global, because fsync
 * below is called by libraries. */
static char refused[64];

int fsync(int fd)
{
    char entry[64], path[4096];
    ssize_t length;

    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    length = readlink(entry, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    if (refused[0] != '\0' && strstr(path, refused) != NULL) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* The save of the step before the best one fails, perhaps when the best
 * evaluation is there already: the best one is kept all the same. */
Test(best, a_failed_save_spoils_no_later_one, .timeout = 240)
{
    double value;
    int64_t step;

    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t whole, hurt;

        run_open(&whole, ways[i], "checkpoint.best=valid_loss");
        run_open(&hurt, ways[i], "checkpoint.best=valid_loss");
        whole.settings[3] = hurt.settings[3] = "checkpoint.every=1 steps";
        harness_run_ok(&whole, 2, &out);
        step = best_of(&whole, true, &value);
        cr_assert_gt(step, 1, "the test shows nothing");
        snprintf(refused, sizeof refused, "/.tmp-step-%010lld-",
                 (long long)step - 1);
        harness_run_ok(&hurt, 2, &out);
        refused[0] = '\0';
        best_expect(&hurt, true, ways[i]);
        harness_close(&hurt);
        harness_close(&whole);
    }
}

/* ---- evaluations during a save ------------------------------------------- */

/* Rank 1 of a run that watches the loss. */
static void state_make(train_state_t *run, train_config_t *config)
{
    *config = (train_config_t){.checkpoint.best = TRAIN_BEST_LOSS};
    *run = (train_state_t){.config = config,
                           .world.rank = 1,
                           .dir.saved_step = -1,
                           .saving.best = {{NAN, -1}, {NAN, -1}, {NAN, -1}}};
}

/* After [step], evaluate and begin to save. */
static bool eval_save(train_state_t *run, int64_t step, double loss)
{
    run->progress.step = step;
    if (!train_best_eval(run, &(train_eval_t){.loss = loss}))
        return false;
    train_best_saving(run);
    return true;
}

static void marks_expect(const train_state_t *run, int64_t now, int64_t kept)
{
    const train_best_t *best = &run->saving.best;

    cr_expect_eq(best->now.step, now, "now %lld, not %lld",
                 (long long)best->now.step, (long long)now);
    cr_expect_eq(best->kept.step, kept, "kept %lld, not %lld",
                 (long long)best->kept.step, (long long)kept);
}

Test(best, a_save_ends_after_a_better_evaluation)
{
    static train_state_t run;
    train_config_t config;
    hdf5io_best_t found;

    for (int good = 0; good < 2; good++) {
        state_make(&run, &config);
        cr_assert(eval_save(&run, 1, 0.9));
        train_best_saved(&run);
        cr_assert(eval_save(&run, 2, 0.8));
        run.progress.step = 3;
        cr_assert(train_best_eval(&run, &(train_eval_t){.loss = 0.7}));
        if (good)
            train_best_saved(&run);
        else
            train_best_unsaved(&run);
        marks_expect(&run, 3, good ? 2 : 1);
        cr_expect(train_best_of(&run, &found) && found.step == 3);
        train_best_saving(&run);
        train_best_unsaved(&run);
        marks_expect(&run, good ? 2 : 1, good ? 2 : 1);
        cr_expect_eq(eval_save(&run, 4, 0.85), !good);
    }
}

/* A save of another step says nothing about the best one. */
Test(best, an_ordinary_save_changes_nothing)
{
    static train_state_t run;
    train_config_t config;

    state_make(&run, &config);
    cr_assert(eval_save(&run, 1, 0.9));
    train_best_saved(&run);
    run.progress.step = 2;
    train_best_saving(&run);
    train_best_unsaved(&run);
    marks_expect(&run, 1, 1);
    train_best_saving(&run);
    train_best_saved(&run);
    marks_expect(&run, 1, 1);
}

Test(best, a_rollback_forgets_what_was_not_written)
{
    static train_state_t run;
    train_config_t config;

    state_make(&run, &config);
    cr_assert(eval_save(&run, 1, 0.9));
    train_best_saved(&run);
    run.dir.saved_step = 1;
    run.progress.step = 2;
    cr_assert(train_best_eval(&run, &(train_eval_t){.loss = 0.7}));
    train_best_back(&run);
    marks_expect(&run, 1, 1);
    cr_expect(eval_save(&run, 2, 0.8));
    run.dir.saved_step = 0; /* that of step 1 is damaged */
    train_best_back(&run);
    marks_expect(&run, -1, -1);
}

/* ---- going back by hand -------------------------------------------------- */

/* A run that goes on from a checkpoint before the best one has none any more:
 * neither its own checkpoints of the same steps, nor those of another run. */
Test(best, resuming_before_it_forgets_it, .timeout = 240)
{
    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t harness;
        hdf5io_best_t best;
        char *from, *to;
        double value;

        run_open(&harness, ways[0], "checkpoint.best=valid_loss");
        harness.settings[2] = "checkpoint.keep=100";
        harness.settings[3] = "checkpoint.every=1 steps";
        harness_run_ok(&harness, 2, &out);
        cr_assert_gt(best_of(&harness, true, &value), 1);
        from = str_printf("%s/run/checkpoints/step-%010d", harness.dir, 1);
        to = str_printf("%s/elsewhere", harness.dir);
        if (i == 1)
            cr_assert_eq(rename(from, to), 0);
        harness.resume = TRAIN_RESUME_PATH;
        harness.resume_path = i == 0 ? from : to;
        harness.settings[1] = "checkpoint.best=none";
        harness_run_ok(&harness, 2, &out);
        cr_expect(!best_read(&harness, &best), "step %lld",
                  (long long)best.step);
        free(to);
        free(from);
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
