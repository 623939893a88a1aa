/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs: they learn; they can be interrupted anywhere and end with the
 * same bits; an error of one rank ends all ranks with one message.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "lib/facts.h"
#include "train/harness.h"

/* 101 samples in batches of 24: the last step of an epoch has 5. */
#define SAMPLES 101

Test(run, learns_on_any_number_of_ranks)
{
    for (int n = 1; n <= 5; n++) {
        train_outcome_t out;
        harness_t harness;

        harness_open(&harness, SAMPLES);
        harness_run_ok(&harness, n, &out);
        cr_assert_gt(out.accuracy, 0.9, "%d ranks: %g", n, out.accuracy);
        cr_assert_eq(out.step, 15);
        harness_close(&harness);
    }
}

/* ---- interruption ------------------------------------------------------- */

Test(run, interrupted_runs_end_with_the_same_bits, .timeout = 120)
{
    for (int n = 1; n <= 3; n++) {
        train_outcome_t straight, stopped;
        harness_t harness;

        harness_open(&harness, SAMPLES);
        harness_run_ok(&harness, n, &straight);
        harness_close(&harness);
        for (int every = 4 * n; every < 9 * n; every += n) {
            harness_open(&harness, SAMPLES);
            cr_assert_gt(harness_run_interrupted(&harness, every, (int[]){n, n},
                                                 &stopped),
                         2);
            cr_assert_eq(memcmp(&stopped.loss, &straight.loss, sizeof(double)),
                         0, "%d ranks: %.17g, not %.17g", n, stopped.loss,
                         straight.loss);
            harness_close(&harness);
        }
    }
}

/* ---- what the optimizer keeps ------------------------------------------- */

/* amsgrad keeps the largest mean of squares. Dampening is not applied to the
 * first update of a run, but it is applied to the first update of a resumed
 * run. */
Test(run, interrupted_optimizers_end_with_the_same_bits, .timeout = 120)
{
    static const char *const optimizers[] = {
        "optimizer={adam: {lr: 0.05, beta2: 0.5, amsgrad: true}}",
        "optimizer={adamw: {lr: 0.05, beta2: 0.5, amsgrad: true}}",
        "optimizer={sgd: {lr: 0.05, momentum: 0.9, dampening: 0.5}}"};

    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        train_outcome_t straight, stopped;
        harness_t whole, parts;

        harness_open(&whole, SAMPLES);
        harness_open(&parts, SAMPLES);
        whole.settings[0] = parts.settings[0] = optimizers[i];
        harness_run_ok(&whole, 2, &straight);
        cr_expect_gt(
            harness_run_interrupted(&parts, 8, (int[]){2, 2}, &stopped), 2);
        cr_expect_eq(memcmp(&stopped.loss, &straight.loss, sizeof(double)), 0,
                     "%s: %.17g, not %.17g", optimizers[i], stopped.loss,
                     straight.loss);
        harness_compare(&whole, &parts, 15, 0, optimizers[i]);
        harness_close(&parts);
        harness_close(&whole);
    }
}

Test(run, the_average_of_weights_is_evaluated_and_survives)
{
    train_outcome_t plain, average, stopped;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "ema.decay=0.8";
    harness.settings[1] = "ema.evaluate=false";
    harness_run_ok(&harness, 2, &plain);
    harness.settings[1] = NULL;
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &average);
    cr_assert_neq(average.loss, plain.loss);
    cr_assert_float_eq(average.loss, plain.loss, 0.5 * plain.loss);
    harness_close(&harness);
    harness_open(&harness, SAMPLES);
    harness.settings[0] = "ema.decay=0.8";
    cr_assert_gt(harness_run_interrupted(&harness, 10, (int[]){2, 2}, &stopped),
                 1);
    cr_assert_eq(memcmp(&stopped.loss, &average.loss, sizeof(double)), 0,
                 "%.17g, not %.17g", stopped.loss, average.loss);
    harness_close(&harness);
}

/* The value of [key] in the first row of metrics.jsonl. */
static double first_metric(const harness_t *harness, const char *key)
{
    char *path = str_printf("%s/run/metrics.jsonl", harness->dir);
    char *mark = str_printf("\"%s\":", key);
    FILE *file = fopen(path, "r");
    char line[2048];
    const char *at;
    double value;

    cr_assert_not_null(file, "%s", path);
    cr_assert_not_null(fgets(line, sizeof line, file));
    at = strstr(line, mark);
    cr_assert_not_null(at, "no %s in %s", mark, line);
    value = strtod(at + strlen(mark), NULL);
    fclose(file);
    free(mark);
    free(path);
    return value;
}

/* The rate of the run without scaling is 1e-2, with a warm-up of 5 updates. */
Test(run, the_rate_is_scaled_by_the_batch)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &out);
    cr_assert_float_eq(first_metric(&harness, "lr"), 0.002, 1e-9);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "train.scale_lr=linear";
    harness.settings[1] = "train.base_batch=12";
    harness_run_ok(&harness, 2, &out);
    cr_assert_float_eq(first_metric(&harness, "lr"), 0.004, 1e-9);
    harness_close(&harness);
}

/* The logged norm is the one before clipping. A tight clip by value keeps the
 * weights of SGD close to their initial values. */
Test(run, gradients_are_clipped_by_value)
{
    train_outcome_t free, held;
    harness_t harness;
    double norm;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "optimizer={sgd: {lr: 0.1}}";
    harness_run_ok(&harness, 2, &free);
    norm = first_metric(&harness, "grad_norm");
    harness.settings[1] = "train.clip_value=1.0e-9";
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &held);
    cr_assert_float_eq(first_metric(&harness, "grad_norm"), norm, 1e-5 * norm);
    cr_assert_gt(held.loss, free.loss + 0.1);
    harness_close(&harness);
}

/* With both kinds of clipping: if one of them has no effect, the run has the
 * bits of the other alone; if both have, the change is smaller than with
 * either. */
Test(run, gradients_are_clipped_by_norm_and_by_value)
{
    static const char *const clips[][2] = {
        {"train.clip_norm=0.2", NULL},
        {"train.clip_norm=0.2", "train.clip_value=1.0e9"},
        {"train.clip_norm=0.2", "train.clip_value=0.02"},
        {"train.clip_norm=1.0e9", "train.clip_value=0.02"},
    };
    train_outcome_t out[4];
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "optimizer={sgd: {lr: 0.1}}";
    for (int i = 0; i < 4; i++) {
        harness.settings[1] = clips[i][0];
        harness.settings[2] = clips[i][1];
        harness_run_ok(&harness, 2, &out[i]);
    }
    cr_assert_eq(out[1].loss, out[0].loss);
    cr_assert_gt(out[2].loss, out[0].loss);
    cr_assert_gt(out[2].loss, out[3].loss);
    harness_close(&harness);
}

/* With all but the last layer frozen the run still learns, with another loss.
 */
Test(run, groups_change_the_run)
{
    train_outcome_t whole, part;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &whole);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "optimizer.groups=[{match: 'linear1.*', freeze: "
                          "true}, {match: '*.bias', weight_decay: 0}]";
    harness_run_ok(&harness, 2, &part);
    cr_assert_neq(part.loss, whole.loss);
    cr_assert_lt(part.loss, 0.69);
    harness.settings[0] = "optimizer.groups=[{match: 'linear3.*'}]";
    cr_assert_eq(harness_run(&harness, 2, &part, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "'linear3.*' matches no parameter"),
                       "%s", err.text);
    harness_close(&harness);
}

/* With bf16 a run learns on any number of ranks, or a message says what the
 * processor lacks. A run with auto has the bits of bf16 or of fp32. */
Test(run, products_in_bf16)
{
    train_outcome_t fp32, bf16, chosen;
    harness_t harness;
    err_t err = ERR_INIT;
    err_code_t rc;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &fp32);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "train.precision=auto";
    harness_run_ok(&harness, 2, &chosen);
    harness.settings[0] = "train.precision=bf16";
    rc = harness_run(&harness, 2, &bf16, &err);
    if (rc == ERR_UNAVAILABLE) {
        cr_expect_not_null(strstr(err.text, "train.precision is bf16"), "%s",
                           err.text);
        cr_expect_eq(chosen.loss, fp32.loss);
    } else {
        cr_assert_eq(rc, ERR_OK, "%s", err.text);
        cr_expect_eq(chosen.loss, bf16.loss);
        cr_expect_neq(bf16.loss, fp32.loss);
        cr_expect_float_eq(bf16.loss, fp32.loss, 0.1 * fp32.loss + 0.02);
        harness_run_ok(&harness, 3, &chosen);
        cr_expect_float_eq(chosen.loss, bf16.loss, 0.1 * bf16.loss + 0.02);
    }
    harness_close(&harness);
}

Test(run, resumes_on_another_number_of_ranks)
{
    train_outcome_t straight, stopped;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 4, &straight);
    harness_close(&harness);
    harness_open(&harness, SAMPLES);
    cr_assert_gt(harness_run_interrupted(&harness, 15, (int[]){4, 2}, &stopped),
                 1);
    /* The statistics of batchnorm, and the dropout, are those of each rank. */
    cr_assert_float_eq(stopped.loss, straight.loss, 0.25 * straight.loss,
                       "%g, %g without a stop", stopped.loss, straight.loss);
    harness_close(&harness);
}

Test(run, a_complete_run_reports_its_numbers_again)
{
    train_outcome_t first, again;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &first);
    harness_run_ok(&harness, 2, &again);
    cr_assert_eq(first.step, again.step);
    cr_assert_eq(memcmp(&first.loss, &again.loss, sizeof(double)), 0);
    harness_close(&harness);
}

/* ---- resume options ----------------------------------------------------- */

Test(run, never_refuses_a_directory_with_checkpoints)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness.resume = TRAIN_RESUME_NEVER;
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "--fresh"), "%s", err.text);
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(out.step, 15);
    harness_close(&harness);
}

/* Number of entries of the run directory whose names contain [word]. */
static int entries(const harness_t *harness, const char *word)
{
    char *path = str_printf("%s/run", harness->dir);
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    cr_assert_not_null(dir, "%s", path);
    while ((entry = readdir(dir)) != NULL)
        count += strstr(entry->d_name, word) != NULL;
    closedir(dir);
    free(path);
    return count;
}

Test(run, fresh_keeps_all_that_was_there_and_nothing_else)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "train.epochs=1";
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(entries(&harness, ".before-"), 0);
    /* Several fresh starts within one second get different names. */
    for (int n = 1; n <= 3; n++) {
        harness_run_ok(&harness, 2, &out);
        cr_assert_eq(entries(&harness, "checkpoints.before-"), n);
        cr_assert_eq(entries(&harness, "metrics.jsonl.before-"), n);
    }
    harness_close(&harness);
}

/* Slurm repeats the command line when it requeues a job, so a second life sees
 * --fresh or --resume again. */
Test(run, a_requeued_job_goes_on_whatever_its_first_life_was_told)
{
    const train_resume_t told[] = {TRAIN_RESUME_FRESH, TRAIN_RESUME_NEVER,
                                   TRAIN_RESUME_PATH};
    train_outcome_t straight, out;
    harness_t harness, other;
    err_t err = ERR_INIT;
    char *path;

    harness_open(&other, SAMPLES);
    other.settings[0] = "train.epochs=1";
    harness_run_ok(&other, 2, &out);
    path = str_printf("%s/run/checkpoints/step-0000000005", other.dir);
    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &straight);
    harness_close(&harness);
    for (int i = 0; i < 3; i++) {
        harness_open(&harness, SAMPLES);
        harness.resume = told[i];
        harness.resume_path = path;
        harness_interrupt(&harness, 20);
        cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_REQUEUE);
        cr_assert_gt(out.step, 5);
        harness.signal = NULL;
        harness.restarts = 1;
        harness_run_ok(&harness, 2, &out);
        cr_assert_eq(out.step, straight.step);
        cr_assert_eq(entries(&harness, ".before-"), 0);
        harness_close(&harness);
    }
    free(path);
    harness_close(&other);
}

/* --resume PATH in a directory that has checkpoints of later steps. The first
 * life ends before its own first checkpoint; the next life must start from
 * PATH, not from those checkpoints. PATH is in this directory or in that of
 * another run. */
Test(run, a_requeued_job_goes_on_from_the_path_that_it_was_told)
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        train_outcome_t straight, out;
        harness_t harness, other;
        double steps[32];
        err_t err = ERR_INIT;
        char *path;

        harness_open(&other, SAMPLES);
        other.settings[0] = "train.epochs=1";
        harness_run_ok(&other, 2, &out);
        harness_open(&harness, SAMPLES);
        harness.settings[0] = "checkpoint.every=5 steps";
        harness_run_ok(&harness, 2, &straight);
        path = str_printf("%s/run/checkpoints/step-0000000005",
                          elsewhere ? other.dir : harness.dir);
        harness.resume = TRAIN_RESUME_PATH;
        harness.resume_path = path;
        harness_label_set(&harness, 17, 9);
        cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
        harness_label_set(&harness, 17, 1);
        cr_expect_eq(entries(&harness, "metrics.jsonl.before-"), elsewhere);
        harness.restarts = 1;
        harness_run_ok(&harness, 3, &out);
        cr_expect_eq(out.step, straight.step);
        cr_expect_eq(harness_values(&harness, false, "step", steps, 32),
                     elsewhere ? 10 : 15);
        cr_expect_eq(steps[0], elsewhere ? 6 : 1);
        free(path);
        harness_close(&harness);
        harness_close(&other);
    }
}

/* The first life was killed before it could act on --fresh: the next life still
 * has to. */
Test(run, a_requeued_job_begins_what_its_first_life_could_not)
{
    train_outcome_t straight, out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &straight);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.restarts = 1;
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(entries(&harness, "checkpoints.before-"), 1);
    cr_assert_eq(out.step, straight.step);
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(entries(&harness, "checkpoints.before-"), 1);
    harness_close(&harness);
}

/* Copy train.h5 to a second file, which doubles the data. */
static void data_double(const harness_t *harness)
{
    char *command = str_printf("cp %s/train.h5 %s/train-more.h5", harness->dir,
                               harness->dir);

    cr_assert_eq(system(command), 0);
    free(command);
}

Test(run, data_that_grew_between_two_lives_is_no_secret)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *files;

    harness_open(&harness, SAMPLES);
    files = str_printf("data.train=%s/train*.h5", harness.dir);
    harness.settings[0] = files;
    harness.settings[1] = "train.reproducible=true";
    harness_interrupt(&harness, 20);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_REQUEUE);
    harness.signal = NULL;
    data_double(&harness);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "when the checkpoint was written"),
                       "%s", err.text);
    harness.settings[1] = "train.reproducible=false";
    harness_run_ok(&harness, 2, &out);
    free(files);
    harness_close(&harness);
}

Test(run, another_model_is_refused_by_name)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &out);
    harness.settings[0] = "model.layers=[{linear: {out: 2}}]";
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "model/linear1."), "%s", err.text);
    harness_close(&harness);
}

/* ---- errors
 * -----------------------------------------------------------------------------
 */

Test(run, a_bad_label_ends_all_ranks_with_its_row)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness_label_set(&harness, 77, 9);
    cr_assert_eq(harness_run(&harness, 4, &out, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "77"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "train.h5"), "%s", err.text);
    harness_close(&harness);
}

Test(run, a_loss_that_is_no_number_ends_before_it_spoils_the_weights)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "optimizer={sgd: {lr: 1.0e6}}";
    harness.settings[1] = "schedule=constant";
    harness.settings[2] = "model.layers=[{linear: {out: 2}}]";
    harness.settings[3] = "data.input.scale=1.0e30";
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED);
    FACTS(err.text, "the loss became nan in step 2: lower the optimizer's lr, ",
          "warm up longer or set train.clip_norm; no checkpoint was written");
    harness_close(&harness);
}

Test(run, fewer_samples_in_a_batch_than_ranks_is_refused)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "train.batch=3";
    cr_assert_eq(harness_run(&harness, 4, &out, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "train.batch is 3"), "%s", err.text);
    harness_close(&harness);
}

Test(run, replicas_are_checked_and_agree)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "ddp.check_every=2 steps";
    harness_run_ok(&harness, 3, &out);
    harness_close(&harness);
}

Test(run, accumulation_gives_the_same_run)
{
    train_outcome_t whole, parts;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "model.layers=[{linear: {out: 16}}, relu, "
                          "{linear: {out: 2}}]";
    harness_run_ok(&harness, 2, &whole);
    harness.settings[1] = "train.accumulate=3";
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &parts);
    cr_assert_float_eq(parts.loss, whole.loss, 1e-4 * whole.loss);
    harness_close(&harness);
}

/* ---- few samples -------------------------------------------------------- */

Test(run, ranks_without_samples_take_part)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, 3);
    harness.settings[0] = "train.accumulate=4";
    harness.settings[1] = "model.layers=[{linear: {out: 8}}, syncbatchnorm, "
                          "relu, {linear: {out: 2}}]";
    harness_run_ok(&harness, 6, &out);
    cr_assert_eq(out.step, 3);
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[2] = "data.valid=[]";
    harness_run_ok(&harness, 6, &out);
    cr_assert_not(out.have_eval);
    harness_close(&harness);
}
