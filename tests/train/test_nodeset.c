/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs with checkpoint.local. A run is killed when it has a local
 * checkpoint that is newer than all checkpoints of the run directory. The next
 * start resumes from the local checkpoint, and ends with the same bits as a run
 * that was never killed.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "train/killed.h"

/* ---- resuming ------------------------------------------------------------ */

Test(nodeset, a_killed_run_resumes_with_the_same_bits, .timeout = 300)
{
    static const char *const kinds[] = {
        NULL, "ddp.zero=1", "ddp.hook={powersgd: {rank: 2, start_step: 0}}",
        "model.layers=[{linear: {out: 8}}, batchnorm, relu, {linear: {out: "
        "2}}]"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        harness_t whole, parts;

        killed_pair(&whole, &parts, kinds[i]);
        killed_finish(&parts, KILLED_RANKS, &whole, 1);
        killed_pair_close(&whole, &parts);
    }
}

Test(nodeset, other_numbers_of_ranks_resume, .timeout = 300)
{
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        harness_t whole, parts;

        killed_pair(&whole, &parts, "train.reproducible=true");
        killed_finish(&parts, ranks, &whole, 1);
        killed_pair_close(&whole, &parts);
    }
}

/* The directory of checkpoints is gone. */
Test(nodeset, no_checkpoint_is_read, .timeout = 120)
{
    harness_t whole, parts;
    char *path;

    killed_pair(&whole, &parts, NULL);
    path = str_printf("%s/run/checkpoints", parts.dir);
    cr_assert_eq(rmdir(path), 0);
    killed_finish(&parts, KILLED_RANKS, &whole, 1);
    free(path);
    killed_pair_close(&whole, &parts);
}

/* ---- sets that are not used ---------------------------------------------- */

/* Truncate a part of each set. */
static void sets_cut(void)
{
    char *home = killed_home();
    const struct dirent *entry;
    DIR *dir = opendir(home);
    int cut = 0;

    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char *path = str_printf("%s/%s/rank-1.f32", home, entry->d_name);

        cut += truncate(path, 8) == 0;
        free(path);
    }
    cr_assert_gt(cut, 0);
    closedir(dir);
    free(home);
}

Test(nodeset, damaged_ones_are_not_used, .timeout = 120)
{
    harness_t whole, parts;

    killed_pair(&whole, &parts, NULL);
    sets_cut();
    killed_finish(&parts, KILLED_RANKS, &whole, 0);
    killed_pair_close(&whole, &parts);
}

/* --fresh begins a new line: the sets of the old line are deleted, and no later
 * life reads them. */
Test(nodeset, a_fresh_start_leaves_the_line, .timeout = 120)
{
    harness_t whole, parts;

    killed_pair(&whole, &parts, NULL);
    parts.resume = TRAIN_RESUME_FRESH;
    killed_finish(&parts, KILLED_RANKS, &whole, 0);
    killed_pair_close(&whole, &parts);
}

/* The fresh start has renamed the checkpoints, and then fails. */
Test(nodeset, a_fresh_start_that_fails_leaves_the_line, .timeout = 120)
{
    harness_t whole, parts;
    char *path;
    train_outcome_t out;
    err_t err = ERR_INIT;

    killed_pair(&whole, &parts, NULL);
    path = str_printf("%s/run/begun", parts.dir);
    cr_assert_eq(mkdir(path, 0777), 0);
    parts.resume = TRAIN_RESUME_FRESH;
    cr_expect_eq(harness_run(&parts, KILLED_RANKS, &out, &err), ERR_IO, "%s",
                 err.text);
    cr_assert_eq(rmdir(path), 0);
    parts.resume = TRAIN_RESUME_AUTO;
    killed_finish(&parts, KILLED_RANKS, &whole, 0);
    free(path);
    killed_pair_close(&whole, &parts);
}

/* Has a life resumed from a set? */
static bool resumed_locally(const harness_t *harness)
{
    char *path = str_printf("%s/run/lives.jsonl", harness->dir), *text = NULL;
    bool found;

    cr_assert_eq(file_read(path, &text, NULL, NULL), ERR_OK);
    found = strstr(text, "/local/cddp-") != NULL;
    free(text);
    free(path);
    return found;
}

/* A checkpoint of a later step is read in place of a set. A life without sets
 * makes this checkpoint. */
Test(nodeset, a_newer_checkpoint_wins, .timeout = 120)
{
    harness_t harness;
    char *path, *text = NULL;
    train_outcome_t out;
    size_t bytes;
    err_t err = ERR_INIT;

    killed_open(&harness, NULL);
    killed_life(&harness);
    path = str_printf("%s/run/local", harness.dir);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    killed_rename(&harness, "local", "away"); /* the sets must not be deleted */
    harness.settings[6] = NULL;
    harness_run_ok(&harness, KILLED_RANKS, &out);
    killed_rename(&harness, "away", "local");
    cr_assert_eq(file_publish(path, text, bytes, &err), ERR_OK, "%s", err.text);
    harness.settings[6] = killed_option;
    harness_run_ok(&harness, KILLED_RANKS, &out);
    cr_expect_eq(harness_events(&harness, "resumed"), 1);
    cr_expect_not(resumed_locally(&harness));
    free(text);
    free(path);
    harness_close(&harness);
}

/* Leave a damaged checkpoint with a later step than all others. */
static void damaged_make(const harness_t *harness)
{
    char *path = str_printf("%s/run/checkpoints/step-0000000009", harness->dir);

    cr_assert_eq(mkdir(path, 0777), 0);
    free(path);
}

/* A damaged checkpoint has a later step than the set, and no checkpoint is
 * whole. */
Test(nodeset, a_damaged_checkpoint_hides_no_set, .timeout = 240)
{
    harness_t whole, parts;

    killed_pair(&whole, &parts, NULL);
    damaged_make(&parts);
    killed_finish(&parts, KILLED_RANKS, &whole, 1);
    cr_expect(resumed_locally(&parts));
    killed_pair_close(&whole, &parts);
}

/* Nobody knows whether a checkpoint is newer than the set. */
Test(nodeset, checkpoints_that_cannot_be_listed_refuse_the_start,
     .timeout = 120)
{
    harness_t whole, parts;
    char *path;
    FILE *file;
    train_outcome_t out;
    err_t err = ERR_INIT;

    killed_pair(&whole, &parts, NULL);
    path = str_printf("%s/run/checkpoints", parts.dir);
    cr_assert_eq(rmdir(path), 0);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
    cr_expect_eq(harness_run(&parts, KILLED_RANKS, &out, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, "cannot list"), "%s", err.text);
    cr_assert_eq(unlink(path), 0);
    killed_finish(&parts, KILLED_RANKS, &whole, 1);
    free(path);
    killed_pair_close(&whole, &parts);
}

/* The run directory has a checkpoint of the end of the first epoch; a life that
 * is killed in the second one leaves a set. */
static void second_epoch_kill(harness_t *harness)
{
    train_outcome_t out;

    harness->settings[3] = "train.epochs=1";
    harness_run_ok(harness, KILLED_RANKS, &out);
    harness->settings[3] = "train.epochs=2";
    killed_steps = 4;
    killed_checkpoints = 1;
    killed_life(harness);
}

static void second_epoch_killed(harness_t *harness)
{
    killed_open(harness, NULL);
    second_epoch_kill(harness);
}

/* A damaged checkpoint has a later step than the set, and the set is newer than
 * the newest whole checkpoint. */
Test(nodeset, a_damaged_checkpoint_hides_no_set_after_a_whole_one,
     .timeout = 240)
{
    harness_t whole, parts;

    killed_whole(&whole, NULL);
    second_epoch_killed(&parts);
    cr_expect_not(resumed_locally(&parts));
    damaged_make(&parts);
    killed_finish(&parts, KILLED_RANKS, &whole, 2);
    cr_expect(resumed_locally(&parts));
    killed_pair_close(&whole, &parts);
}

/* Neither the checkpoint nor the set is whole. */
Test(nodeset, nothing_whole_refuses_the_start, .timeout = 120)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    killed_open(&harness, NULL);
    killed_life(&harness);
    damaged_make(&harness);
    sets_cut();
    cr_expect_eq(harness_run(&harness, KILLED_RANKS, &out, &err), ERR_DATA,
                 "%s", err.text);
    cr_expect(strstr(err.text, "is intact"), "%s", err.text);
    cr_expect_eq(harness_events(&harness, "resumed"), 0);
    harness_close(&harness);
}

/* The batch of the last life does not divide the samples at the set, but
 * fits the checkpoint at the end of the first epoch. */
Test(nodeset, one_that_does_not_fit_gives_way_to_a_checkpoint, .timeout = 120)
{
    harness_t harness;
    train_outcome_t out;

    second_epoch_killed(&harness);
    harness.settings[4] = "train.batch=16";
    harness_run_ok(&harness, KILLED_RANKS, &out);
    cr_expect_eq(out.step, 5 + 7, "step %d", (int)out.step);
    cr_expect_eq(harness_events(&harness, "resumed"), 2);
    harness_close(&harness);
}

/* A life of one epoch is complete and writes no checkpoint, so only the set has
 * the weights. */
Test(nodeset, the_only_one_stays_at_the_end, .timeout = 120)
{
    harness_t whole, parts;
    train_outcome_t out;
    char *set;

    killed_whole(&whole, NULL);
    second_epoch_killed(&parts);
    parts.settings[3] = "train.epochs=1";
    harness_run_ok(&parts, KILLED_RANKS, &out);
    cr_expect_gt(out.step, 5);
    set = killed_set();
    cr_expect_not_null(set);
    free(set);
    parts.settings[3] = "train.epochs=2";
    killed_finish(&parts, KILLED_RANKS, &whole, 3);
    killed_pair_close(&whole, &parts);
}

/* The run directory has no checkpoint, or only a damaged one, so none can be
 * read in place of the set. */
Test(nodeset, the_only_one_refuses_a_start_that_it_does_not_fit, .timeout = 120)
{
    harness_t harness;

    killed_open(&harness, NULL);
    killed_life(&harness);
    harness.settings[4] = "train.batch=30";
    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        err_t err = ERR_INIT;

        if (i == 1)
            damaged_make(&harness);
        cr_expect_eq(harness_run(&harness, KILLED_RANKS, &out, &err),
                     ERR_CONFIG, "%s", err.text);
        cr_expect_not_null(strstr(err.text, "does not divide"), "%s", err.text);
    }
    harness_close(&harness);
}

/* ---- saves --------------------------------------------------------------- */

/* Neither the numbers of a run nor its checkpoints depend on local ones. */
Test(nodeset, they_change_no_bits, .timeout = 120)
{
    static const char *const every[] = {"checkpoint.local_every=1 steps",
                                        "checkpoint.local_every=3 steps"};
    harness_t plain;

    saves_open(&plain, "checkpoint.async=true", "checkpoint.every=3 steps",
               NULL);
    harness_run_ok(&plain, KILLED_RANKS, &(train_outcome_t){0});
    for (int i = 0; i < 2; i++) {
        harness_t harness;

        killed_open(&harness, NULL);
        harness.settings[1] = "checkpoint.every=3 steps";
        harness.settings[5] = every[i];
        harness_run_ok(&harness, KILLED_RANKS, &(train_outcome_t){0});
        harness_compare(&plain, &harness, SAVES_STEPS, 0, every[i]);
        cr_expect_eq(harness_events(&harness, "checkpoint"), 4);
        harness_close(&harness);
    }
    harness_close(&plain);
}

/* A file is where the directory should be: the run goes on, and says so once.
 */
Test(nodeset, a_place_that_cannot_be_written_does_not_end_a_run, .timeout = 120)
{
    harness_t harness;
    char *heard, *at;
    FILE *file;

    killed_open(&harness, NULL);
    file = fopen(strchr(killed_option, '=') + 1, "w");
    cr_assert_not_null(file);
    fclose(file);
    heard = harness_listen(&harness, KILLED_RANKS);
    at = strstr(heard, "no local checkpoint of step");
    cr_assert_not_null(at, "%s", heard);
    cr_expect_null(strstr(at + 1, "no local checkpoint of step"), "%s", heard);
    free(heard);
    harness_close(&harness);
}

/* A run that goes back begins a new line, and ends with the same bits as
 * without local checkpoints. */
Test(nodeset, a_rollback_leaves_the_line, .timeout = 240)
{
    train_outcome_t out[2];
    harness_t harnesses[2];

    for (int i = 0; i < 2; i++) {
        harness_t *harness = &harnesses[i];

        killed_open(harness, "fault.diverge=rollback");
        harness->settings[1] = "checkpoint.every=2 steps";
        harness->settings[8] = "data.shuffle=none";
        harness->settings[9] = "model.layers=[{linear: {out: 2}}]";
        harness->settings[5] = "checkpoint.local_every=1 steps";
        if (i == 0)
            harness->settings[6] = "checkpoint.local=\"\"";
        for (int row = 50; row < 52; row++) { /* one is taken for the other */
            harness_input_set(harness, row, FLT_MAX);
            harness_label_set(harness, row, row % 2);
        }
        harness_run_ok(harness, KILLED_RANKS, &out[i]);
        cr_expect_gt(harness_events(harness, "rollback"), 0);
    }
    cr_expect_eq(memcmp(&out[0].loss, &out[1].loss, sizeof(double)), 0);
    harness_compare(&harnesses[0], &harnesses[1], SAVES_STEPS, 0, "rollback");
    harness_close(&harnesses[1]);
    harness_close(&harnesses[0]);
}

/* A run has resumed from a set, and a damaged checkpoint has a later step than
 * all others: the run goes back to the whole checkpoint, and its message names
 * the step of this checkpoint. */
Test(nodeset, a_rollback_names_the_checkpoint_that_is_read, .timeout = 240)
{
    harness_t harness;
    char *heard;

    killed_open(&harness, "fault.diverge=rollback");
    harness.settings[8] = "data.shuffle=none";
    harness.settings[9] = "model.layers=[{linear: {out: 2}}]";
    second_epoch_kill(&harness);
    damaged_make(&harness);
    for (int row = 80; row < 82; row++) { /* in step 9, which follows the set */
        harness_input_set(&harness, row, FLT_MAX);
        harness_label_set(&harness, row, row % 2);
    }
    heard = harness_listen(&harness, KILLED_RANKS);
    cr_expect(resumed_locally(&harness));
    cr_expect_not_null(strstr(heard, "back to the checkpoint of step 5,"), "%s",
                       heard);
    cr_expect_eq(harness_events(&harness, "rollback"), 1);
    free(heard);
    harness_close(&harness);
}

/* A run that has resumed from a set has no checkpoint to go back to. */
Test(nodeset, a_rollback_needs_a_checkpoint, .timeout = 120)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    killed_open(&harness, "fault.diverge=rollback");
    harness.settings[5] = "checkpoint.local_every=1 steps";
    harness.settings[8] = "data.shuffle=none";
    harness.settings[9] = "model.layers=[{linear: {out: 2}}]";
    for (int row = 50; row < 52; row++) { /* in the third step */
        harness_input_set(&harness, row, FLT_MAX);
        harness_label_set(&harness, row, row % 2);
    }
    killed_steps = 2;
    killed_life(&harness);
    cr_expect_eq(harness_run(&harness, KILLED_RANKS, &out, &err), ERR_DIVERGED);
    cr_expect_not_null(strstr(err.text, "none to go back to"), "%s", err.text);
    cr_expect_eq(harness_events(&harness, "resumed"), 1);
    harness_close(&harness);
}

/* ---- settings ------------------------------------------------------------ */

Test(nodeset, settings_that_do_not_fit_are_refused)
{
    static const char *const wrong[] = {
        "checkpoint.async=false", "checkpoint.local_every=1 epoch",
        "checkpoint.local_every=10 min", "checkpoint.local_every=never"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        train_config_t config;
        tree_t *tree = NULL;
        harness_t harness;
        err_t err = ERR_INIT;

        killed_open(&harness, NULL);
        harness.settings[i == 0 ? 0 : 5] = wrong[i];
        cr_expect_eq(harness_config(&harness, &tree, &config, &err), ERR_CONFIG,
                     "%s", wrong[i]);
        cr_expect_not_null(strstr(err.text, "local"), "%d: %s", (int)i,
                           err.text);
        tree_free(tree);
        harness_close(&harness);
    }
}
