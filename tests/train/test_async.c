/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs with checkpoint.async: every checkpoint has the bytes that it has
 * without, the run ends with the same bits, and it resumes from any of them.
 */
#include <criterion/criterion.h>
#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "obs/lives.h"
#include "train/saves.h"

/* ---- the same bytes ------------------------------------------------------ */

/* Read shard [rank] of the checkpoint of [step]. False: there is none. */
static bool shard_read(const harness_t *harness, int64_t step, int rank,
                       char **bytes, size_t *count)
{
    char *path = str_printf("%s/run/checkpoints/step-%010lld/shard-%d.h5",
                            harness->dir, (long long)step, rank);
    err_t err = ERR_INIT;
    const bool there = access(path, F_OK) == 0;

    if (there)
        cr_assert_eq(file_read(path, bytes, count, &err), ERR_OK, "%s",
                     err.text);
    free(path);
    return there;
}

/* Compare all checkpoints of both runs. Returns their number. */
static int shards_compare(const harness_t *a, const harness_t *b, int ranks,
                          const char *what)
{
    int saves = 0;

    for (int64_t step = 1; step <= SAVES_STEPS; step++) {
        bool first = false;

        for (int rank = 0; rank < ranks; rank++) {
            char *bytes[2] = {NULL, NULL};
            size_t counts[2] = {0, 0};
            const bool there = shard_read(a, step, rank, &bytes[0], &counts[0]);

            cr_assert_eq(shard_read(b, step, rank, &bytes[1], &counts[1]),
                         there, "%s: step %lld", what, (long long)step);
            cr_assert_eq(counts[0], counts[1]);
            cr_assert(!there || memcmp(bytes[0], bytes[1], counts[0]) == 0,
                      "%s, %d ranks: shard %d of step %lld differs", what,
                      ranks, rank, (long long)step);
            first = first || there;
            free(bytes[0]);
            free(bytes[1]);
        }
        saves += first;
    }
    return saves;
}

/* What changes when: ZeRO's parts, a hook's state within a step, running
 * statistics, and the moving average. */
static const char *const kinds[] = {
    NULL,
    "ddp.zero=1",
    "ddp.hook={powersgd: {rank: 2, start_step: 0}}",
    "model.layers=[{linear: {out: 8}}, batchnorm, relu, {linear: {out: 2}}]",
    "train.reproducible=true",
    "ema={decay: 0.9}",
};

Test(async, checkpoints_have_the_bytes_of_synchronous_ones, .timeout = 300)
{
    static const int sizes[] = {1, 2, 4};

    for (size_t i = 0; i < 3 * sizeof kinds / sizeof *kinds; i++) {
        const char *kind = kinds[i / 3];
        const int ranks = sizes[i % 3];
        train_outcome_t out[2];
        harness_t plain, behind;

        saves_open(&plain, "checkpoint.async=false", "checkpoint.every=2 steps",
                   kind);
        saves_open(&behind, "checkpoint.async=true", "checkpoint.every=2 steps",
                   kind);
        harness_run_ok(&plain, ranks, &out[0]);
        harness_run_ok(&behind, ranks, &out[1]);
        cr_expect_eq(shards_compare(&plain, &behind, ranks,
                                    kind == NULL ? "default" : kind),
                     5);
        cr_expect_eq(memcmp(&out[0].loss, &out[1].loss, sizeof(double)), 0,
                     "%.17g, not %.17g", out[1].loss, out[0].loss);
        harness_close(&behind);
        harness_close(&plain);
    }
}

/* A checkpoint after each step: one that is due waits for the one before. The
 * history and the metrics have each of them once. */
Test(async, none_is_left_out, .timeout = 120)
{
    train_outcome_t out;
    harness_t harness;

    saves_open(&harness, "checkpoint.async=true", "checkpoint.every=1 steps",
               NULL);
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(harness_events(&harness, "checkpoint"), SAVES_STEPS);
    harness_close(&harness);
}

/* Without checkpoint.async, the line of a checkpoint counts the seconds of all
 * checkpoints up to this one. [context] is their sum. */
static void saved_see(void *context, const obs_lives_read_t *read)
{
    double *seconds = context;

    if (read->line.event != OBS_LIVES_CHECKPOINT)
        return;
    *seconds += read->line.seconds;
    cr_assert_not_null(read->line.spent);
    cr_expect_geq(read->line.spent->seconds[OBS_SPENT_SAVE], 0.99 * *seconds);
}

/* If a run is killed after a checkpoint, the next start knows from the line of
 * the checkpoint how long training has waited for it. */
Test(async, the_time_of_a_checkpoint_counts_with_it, .timeout = 120)
{
    double seconds = 0;
    train_outcome_t out;
    harness_t harness;
    char *run;
    err_t err = ERR_INIT;

    saves_open(&harness, "checkpoint.async=false", "checkpoint.every=2 steps",
               NULL);
    harness_run_ok(&harness, 2, &out);
    run = str_printf("%s/run", harness.dir);
    cr_assert_eq(obs_lives_read(run, saved_see, &seconds, NULL, &err), ERR_OK,
                 "%s", err.text);
    cr_expect_gt(seconds, 0);
    free(run);
    harness_close(&harness);
}

/* ---- behind training ----------------------------------------------------- */

/* The fsyncs of a saver's thread wait until the ranks have looked for signals
 * GATE times, which each does once when a step begins. So with two ranks, the
 * fifth step has begun. global, because fsync below is called by libraries. */
#define GATE 10
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static int gate_looks;
static bool gate_closed;

static slurm_signal_t gate_look(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_looks++;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate_lock);
    return SLURM_SIGNAL_NONE;
}

static void gate_wait(void)
{
    pthread_mutex_lock(&gate_lock);
    while (gate_closed && gate_looks < GATE)
        pthread_cond_wait(&gate_moved, &gate_lock);
    gate_closed = false;
    pthread_mutex_unlock(&gate_lock);
}

int fsync(int fd)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "cddp-saver") == 0)
        gate_wait();
    return (int)syscall(SYS_fsync, fd);
}

/* Steps are made while the checkpoint of the third step is written: if they
 * were not, its fsync would wait for ever. */
Test(async, steps_are_made_meanwhile, .timeout = 120)
{
    train_outcome_t out;
    harness_t harness;

    saves_open(&harness, "checkpoint.async=true", "checkpoint.every=3 steps",
               NULL);
    harness.signal = gate_look;
    gate_closed = true;
    harness_run_ok(&harness, 2, &out);
    cr_expect(!gate_closed);
    cr_expect_eq(out.step, SAVES_STEPS);
    cr_expect_eq(harness_events(&harness, "checkpoint"), 4);
    harness_close(&harness);
}

/* ---- resuming ------------------------------------------------------------ */

/* A signal may come while a checkpoint is being written: the run waits for it,
 * writes one more, and the next start goes on from there. */
Test(async, interrupted_runs_end_with_the_same_bits, .timeout = 300)
{
    train_outcome_t straight, out;

    for (int zero = 0; zero < 2; zero++)
        for (int looks = 9; looks < 16; looks += 3) {
            harness_t whole, parts;

            saves_open(&whole, "checkpoint.async=true",
                       "checkpoint.every=1 steps", zero ? "ddp.zero=1" : NULL);
            saves_open(&parts, "checkpoint.async=true",
                       "checkpoint.every=1 steps", zero ? "ddp.zero=1" : NULL);
            harness_run_ok(&whole, 2, &straight);
            cr_expect_gt(
                harness_run_interrupted(&parts, looks, (int[]){2, 2}, &out), 1);
            cr_expect_eq(memcmp(&out.loss, &straight.loss, sizeof(double)), 0,
                         "%.17g, not %.17g", out.loss, straight.loss);
            harness_compare(&whole, &parts, SAVES_STEPS, 0, "interrupted");
            harness_close(&parts);
            harness_close(&whole);
        }
}

/* Each checkpoint that was written behind training leads to the same end. */
Test(async, each_checkpoint_can_be_resumed, .timeout = 300)
{
    train_outcome_t straight, out;
    harness_t harness;

    saves_open(&harness, "checkpoint.async=true", "checkpoint.every=3 steps",
               NULL);
    harness_run_ok(&harness, 2, &straight);
    harness.resume = TRAIN_RESUME_PATH;
    for (int64_t step = 9; step > 0; step -= 3) {
        char *path = str_printf("%s/run/checkpoints/step-%010lld", harness.dir,
                                (long long)step);

        harness.resume_path = path;
        harness_run_ok(&harness, 2, &out);
        cr_expect_eq(memcmp(&out.loss, &straight.loss, sizeof(double)), 0,
                     "from step %lld: %.17g, not %.17g", (long long)step,
                     out.loss, straight.loss);
        free(path);
    }
    harness_close(&harness);
}

/* ---- what goes wrong ----------------------------------------------------- */

/* The update of the first step overflows. The next step shows it, too, but the
 * run ends with what the save has found, and keeps nothing. */
Test(async, weights_that_are_no_numbers_are_not_kept, .timeout = 120)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *checkpoint;

    harness_open(&harness, 48);
    harness.settings[0] = "optimizer={sgd: {lr: 1.0e+6}}";
    harness.settings[1] = "schedule=constant";
    harness.settings[2] = "train.batch=48";
    harness.settings[3] = "train.epochs=2";
    harness.settings[4] = "data.input.scale=1.0e+34";
    harness.settings[5] = "model.layers=[{linear: {out: 2}}]";
    harness.settings[6] = "checkpoint.async=true";
    harness.settings[7] = "checkpoint.every=1 steps";
    harness.settings[8] = "train.eval_every=never";
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    cr_expect_not_null(strstr(err.text, "model/linear1.weight became nan"),
                       "%s", err.text);
    cr_expect_not_null(strstr(err.text, "no checkpoint was written"), "%s",
                       err.text);
    checkpoint = str_printf("%s/run/checkpoints/step-0000000001", harness.dir);
    cr_expect_neq(access(checkpoint, F_OK), 0, "it was kept");
    free(checkpoint);
    harness_close(&harness);
}

/* One sample, in the third step of each epoch, makes the loss infinite, or a
 * gradient too large, while the checkpoint of the second step is written.
 * Either way the samples of the third step are left out, as without
 * checkpoint.async. */
Test(async, diverging_runs_go_back_as_synchronous_ones_do, .timeout = 240)
{
    static const char *const ways[] = {"checkpoint.async=false",
                                       "checkpoint.async=true"};
    static const float bad[] = {FLT_MAX, 1.0e25f};

    for (int b = 0; b < 2; b++) {
        train_outcome_t out[2];
        harness_t harnesses[2];

        for (int i = 0; i < 2; i++) {
            harness_t *harness = &harnesses[i];

            saves_open(harness, ways[i], "checkpoint.every=1 steps",
                       "fault.diverge=rollback");
            harness->settings[6] = "data.shuffle=none";
            harness->settings[7] = "optimizer={adamw: {lr: 0.01}}";
            harness_input_set(harness, 50, bad[b]);
            harness_run_ok(harness, 2, &out[i]);
            cr_expect_eq(harness_events(harness, "rollback"), 2, "%g, %s",
                         (double)bad[b], ways[i]);
        }
        cr_expect_eq(memcmp(&out[0].loss, &out[1].loss, sizeof(double)), 0,
                     "%.17g, not %.17g", out[1].loss, out[0].loss);
        harness_compare(&harnesses[0], &harnesses[1], SAVES_STEPS, 0,
                        "rollback");
        harness_close(&harnesses[0]);
        harness_close(&harnesses[1]);
    }
}
