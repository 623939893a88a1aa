/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs that copy their data to a directory of the node. They end with the same
 * bits as runs that do not, and leave nothing in the directory. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "lib/entries.h"
#include "train/harness.h"

enum { SAMPLES = 96 };

TestSuite(staged, .timeout = 300);

/* A run of compressed data that copies it to [node]; to be freed. */
typedef struct staged {
    harness_t harness;
    char *node, *setting;
} staged_t;

static void run_open(harness_t *harness)
{
    harness_open(harness, SAMPLES);
    harness_chunks_add(harness, "/c", 16, false);
    harness->settings[0] = "data.input={path: /c}";
    harness->settings[1] = "data.memory=1";
}

static void staged_open(staged_t *staged)
{
    run_open(&staged->harness);
    staged->node = str_printf("%s/node", staged->harness.dir);
    staged->setting = str_printf("data.stage_dir=%s", staged->node);
    cr_assert_eq(mkdir(staged->node, 0700), 0);
    staged->harness.settings[2] = "data.io=stage";
    staged->harness.settings[3] = staged->setting;
}

static void staged_close(staged_t *staged)
{
    cr_expect_eq(entries_count(staged->node), 0);
    free(staged->setting);
    free(staged->node);
    harness_close(&staged->harness);
}

Test(staged, runs_have_the_bits_of_others_on_any_number_of_ranks)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        harness_t plain;
        staged_t staged;
        train_outcome_t out;

        run_open(&plain);
        staged_open(&staged);
        harness_run_ok(&plain, ranks, &out);
        harness_run_ok(&staged.harness, ranks, &out);
        harness_compare(&plain, &staged.harness, -1, 0, "staged");
        staged_close(&staged);
        harness_close(&plain);
    }
}

Test(staged, runs_that_are_resumed_have_them_too)
{
    harness_t plain;
    staged_t staged;
    train_outcome_t out;

    run_open(&plain);
    plain.settings[2] = "train.reproducible=true";
    staged_open(&staged);
    staged.harness.settings[4] = "train.reproducible=true";
    harness_run_ok(&plain, 2, &out);
    cr_expect_gt(
        harness_run_interrupted(&staged.harness, 23, (const int[]){3, 2}, &out),
        1);
    harness_compare(&plain, &staged.harness, -1, 0, "staged and resumed");
    staged_close(&staged);
    harness_close(&plain);
}

/* If the directory does not exist, one line warns, and the run has the same
 * result. */
Test(staged, that_is_impossible_ends_no_run)
{
    harness_t plain;
    staged_t staged;
    train_outcome_t out;
    char *text;

    run_open(&plain);
    staged_open(&staged);
    cr_assert_eq(rmdir(staged.node), 0);
    text = harness_listen(&staged.harness, 2);
    cr_expect_not_null(strstr(text, "nothing is copied to this node"), "%s",
                       text);
    free(text);
    harness_run_ok(&plain, 2, &out);
    harness_compare(&plain, &staged.harness, -1, 0, "not staged");
    cr_assert_eq(mkdir(staged.node, 0700), 0);
    staged_close(&staged);
    harness_close(&plain);
}
