/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a run keeps when it fails: no checkpoint with NaN or infinity, and
 * nothing in a directory that no longer belongs to the run. The messages say
 * what was kept.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "train/harness.h"

/* 101 samples in batches of 24: the last step of an epoch has 5. */
#define SAMPLES 101

/* ---- divergence ---------------------------------------------------------- */

/* The update of the last step overflows, and no later loss could show it. */
Test(keep, weights_that_are_no_numbers_are_not_kept)
{
    const char *const more[] = {NULL, "ddp.zero=1",
                                "ddp.local_sgd={period: 2, start: 0}",
                                "train.reproducible=true"};
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *checkpoint;

    for (int i = 0; i < 4; i++) {
        harness_open(&harness, 2 * 24);
        harness.settings[0] = "optimizer={sgd: {lr: 1.0e+6}}";
        harness.settings[1] = "schedule=constant";
        harness.settings[2] = "train.batch=48";
        harness.settings[3] = "train.epochs=1";
        harness.settings[4] = "data.input.scale=1.0e+34";
        harness.settings[5] = "model.layers=[{linear: {out: 2}}]";
        harness.settings[6] = more[i];
        cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED, "%s",
                     err.text);
        cr_expect_not_null(strstr(err.text, "model/linear1.weight became nan"),
                           "%s", err.text);
        cr_expect_not_null(strstr(err.text, "no checkpoint was written"), "%s",
                           err.text);
        checkpoint =
            str_printf("%s/run/checkpoints/step-0000000001", harness.dir);
        cr_expect_neq(access(checkpoint, F_OK), 0, "it was kept");
        free(checkpoint);
        harness_close(&harness);
    }
}

/* The message names the checkpoint from which the run can go on. */
Test(keep, a_run_that_diverges_says_which_checkpoint_is_there)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "train.epochs=1";
    harness_run_ok(&harness, 2, &out);
    harness.settings[0] = "train.epochs=2";
    harness.settings[1] = "data.input.scale=1.0e+37";
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED);
    cr_assert_not_null(strstr(err.text, "the newest checkpoint is of step 5"),
                       "%s", err.text);
    harness_close(&harness);
}

/* ---- how often ----------------------------------------------------------- */

/* global, because rename and renameat2 below are called by libraries */
static atomic_int published;

static void rename_count(const char *to)
{
    if (strstr(to, "/checkpoints/step-") != NULL)
        atomic_fetch_add(&published, 1);
}

int rename(const char *from, const char *to)
{
    rename_count(to);
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to,
              unsigned flags)
{
    rename_count(to);
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* A save that is due on the last step of a run is also the save of its end: it
 * is written once. The run has 10 steps in 2 epochs. */
Test(keep, a_save_on_the_last_step_is_written_once)
{
    const struct {
        const char *every;
        int saves;
    } rows[] = {
        {"checkpoint.every=5 steps", 2},  {"checkpoint.every=10 steps", 1},
        {"checkpoint.every=1 steps", 10}, {"checkpoint.every=3 steps", 4},
        {"checkpoint.every=1 epochs", 2}, {"checkpoint.every=2 epochs", 1}};
    const char *const more[] = {NULL, "train.reproducible=true"};
    train_outcome_t out;
    harness_t harness;

    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        harness_open(&harness, SAMPLES);
        harness.settings[0] = "train.epochs=2";
        harness.settings[1] = "train.batch=24";
        harness.settings[2] = rows[i / 2].every;
        harness.settings[3] = more[i % 2];
        atomic_store(&published, 0);
        harness_run_ok(&harness, 2, &out);
        cr_expect_eq(out.step, 10);
        cr_expect_eq(atomic_load(&published), rows[i / 2].saves, "%s: %d saves",
                     rows[i / 2].every, atomic_load(&published));
        harness_close(&harness);
    }
}

/* ---- the run directory --------------------------------------------------- */

/* The harness whose directory is renamed when the run looks for a signal.
 * Global, because the signal function has no argument. */
static const harness_t *victim;
static atomic_int looks_left;

static void victim_rename(const char *from, const char *to)
{
    char *old = str_printf("%s/%s", victim->dir, from);
    char *new = str_printf("%s/%s", victim->dir, to);

    if (rename(old, new) != 0)
        abort();
    free(new);
    free(old);
}

static slurm_signal_t move_away(void)
{
    if (atomic_fetch_sub(&looks_left, 1) == 1)
        victim_rename("run", "moved");
    return SLURM_SIGNAL_NONE;
}

/* Put another directory, as if of another run, in the place of the run
 * directory. */
static slurm_signal_t replace(void)
{
    char *path;

    if (atomic_fetch_sub(&looks_left, 1) == 1) {
        victim_rename("run", "moved");
        path = str_printf("%s/run/checkpoints", victim->dir);
        if (file_make_dirs(path, NULL) != ERR_OK)
            abort();
        free(path);
    }
    return SLURM_SIGNAL_NONE;
}

static int entry_count(const harness_t *harness, const char *name)
{
    char *path = str_printf("%s/%s", harness->dir, name);
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    free(path);
    return count;
}

Test(keep, a_run_directory_that_goes_ends_the_run_and_nothing_is_mixed)
{
    slurm_signal_t (*const what[])(void) = {move_away, replace};
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    for (int i = 0; i < 2; i++) {
        harness_open(&harness, SAMPLES);
        victim = &harness;
        atomic_store(&looks_left, 5);
        harness.signal = what[i];
        cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_IO, "%s",
                     err.text);
        cr_expect_not_null(strstr(err.text, "removed, renamed or replaced"),
                           "%s", err.text);
        cr_expect_eq(entry_count(&harness, "run"), i);
        cr_expect_eq(entry_count(&harness, "run/checkpoints"), 0);
        harness.signal = NULL;
        harness_close(&harness);
    }
}

/* The summary cannot be replaced, as on a full disk. */
Test(keep, results_that_cannot_be_published_are_no_success)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *path;

    harness_open(&harness, SAMPLES);
    path = str_printf("%s/run/summary.json", harness.dir);
    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "summary.json"), "%s", err.text);
    cr_assert_eq(rmdir(path), 0);
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(access(path, F_OK), 0);
    free(path);
    harness_close(&harness);
}

/* ---- coming back --------------------------------------------------------- */

Test(keep, weights_are_not_drawn_to_be_overwritten)
{
    harness_t harness;
    char *text;

    log_level_set(LOG_DEBUG);
    harness_open(&harness, SAMPLES);
    text = harness_listen(&harness, 2);
    cr_expect_not_null(strstr(text, "initial weights drawn"), "%s", text);
    free(text);
    text = harness_listen(&harness, 2);
    cr_expect_not_null(strstr(text, "resumed from"), "%s", text);
    cr_expect_null(strstr(text, "initial weights drawn"), "%s", text);
    free(text);
    harness_close(&harness);
}
