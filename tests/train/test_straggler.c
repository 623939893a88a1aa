/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ranks compare their loads in whole runs: no bit changes, a rank that is much
 * slower than the others is named, and what each rank needed is recorded. A
 * window is one step here.
 */
#include "train/straggler.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "train/harness.h"

#define RANKS 4
#define STEPS 19
#define SLOW 2 /* the rank that is slow */

static bool every_step; /* windows are steps */
static atomic_int looks;

/* These replace functions of this program; see local.mk. */
bool __wrap_train_straggler_due(const train_straggler_t *straggler, double now);
bool __real_train_straggler_due(const train_straggler_t *straggler, double now);
err_code_t __real_train_straggler_look(train_state_t *run, err_t *err);
err_code_t __wrap_train_straggler_look(train_state_t *run, err_t *err);

bool __wrap_train_straggler_due(const train_straggler_t *straggler, double now)
{
    (void)now;
    return every_step && straggler->every > 0 && isfinite(straggler->begun);
}

err_code_t __wrap_train_straggler_look(train_state_t *run, err_t *err)
{
    atomic_fetch_add(&looks, 1);
    return __real_train_straggler_look(run, err);
}

/* Looked for in each step, while it computes. */
static slurm_signal_t sleep_if_slow(void)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    if (log_rank_get() == SLOW)
        nanosleep(&pause, NULL);
    return SLURM_SIGNAL_NONE;
}

static void run_open(harness_t *harness, const char *mode)
{
    harness_open(harness, 24 * STEPS);
    harness->settings[0] = "train.epochs=1";
    harness->settings[1] = "data.valid=[]";
    harness->settings[2] = mode;
}

static void compare(const char *mode)
{
    harness_t alone, compared;
    train_outcome_t out;

    run_open(&alone, mode);
    run_open(&compared, mode);
    every_step = false;
    harness_run_ok(&alone, RANKS, &out);
    cr_expect_eq(looks, 0);
    every_step = true;
    harness_run_ok(&compared, RANKS, &out);
    /* Not in the first step, before which no window has begun. */
    cr_expect_eq(looks, RANKS * (STEPS - 1), "%d looks", looks);
    harness_compare(&alone, &compared, STEPS, 0, "a run that compares loads");
    harness_close(&compared);
    harness_close(&alone);
}

Test(straggler, to_look_for_one_changes_no_bit)
{
    compare(NULL);
}

Test(straggler, to_look_for_one_changes_no_bit_in_reproducible_mode)
{
    compare("train={epochs: 1, batch: 24, reproducible: true, microbatch: 4}");
}

/* The number behind [key] in [text]. */
static double number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    cr_assert_not_null(at, "no %s in %s", key, text);
    return strtod(at + strlen(key), NULL);
}

/* The rows "ranks" in [text] cover [steps] steps. In each row the slow rank
 * computes for at least the 50 ms for which it sleeps. */
static void ranks_expect(char *text, double steps)
{
    double covered = 0, compute[RANKS];
    char *rest = NULL;
    int rows = 0;

    for (char *row = strtok_r(text, "\n", &rest); row != NULL;
         row = strtok_r(NULL, "\n", &rest)) {
        if (strstr(row, "{\"event\": \"ranks\"") != row)
            continue;
        covered += number_after(row, "\"steps\": ");
        cr_expect_not_null(strstr(row, "\"host\": [0,0,0,0]"), "%s", row);
        cr_assert_eq(sscanf(strstr(row, "\"compute_s\": "),
                            "\"compute_s\": [%lf,%lf,%lf,%lf]", &compute[0],
                            &compute[1], &compute[2], &compute[3]),
                     RANKS, "%s", row);
        cr_expect_geq(compute[SLOW], 0.05, "%s", row);
        rows++;
    }
    cr_expect_eq(covered, steps);
    cr_expect_lt(rows, STEPS - 1, "%d rows", rows);
}

Test(straggler, is_named)
{
    harness_t harness;
    train_outcome_t out;
    char *path, *text = NULL;
    err_t err = ERR_INIT;

    run_open(&harness, NULL);
    harness.signal = sleep_if_slow;
    every_step = true;
    harness_run_ok(&harness, RANKS, &out);
    path = str_printf("%s/run/metrics.jsonl", harness.dir);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    cr_expect_not_null(strstr(text, "{\"event\": \"straggler\""), "%s", text);
    cr_expect_not_null(strstr(text, "\"rank\": 2}"), "%s", text);
    cr_expect_not_null(strstr(text, "\"cause\": \"compute"), "%s", text);
    /* The rows cover all steps but the first. The last one comes at the end. */
    ranks_expect(text, STEPS - 1);
    free(text);
    free(path);
    harness_close(&harness);
}

/* The first window is short, so that a short run has one. */
Test(straggler, windows_last_as_long_as_they_should)
{
    train_straggler_t straggler = {.every = 60, .begun = INFINITY};

    cr_expect_not(__real_train_straggler_due(&straggler, 1e9), "no step yet");
    straggler.begun = 100;
    cr_expect_not(__real_train_straggler_due(&straggler, 109));
    cr_expect(__real_train_straggler_due(&straggler, 110));
    straggler.looked = true;
    cr_expect_not(__real_train_straggler_due(&straggler, 159));
    cr_expect(__real_train_straggler_due(&straggler, 160));
    straggler = (train_straggler_t){.every = 2, .begun = 100};
    cr_expect(__real_train_straggler_due(&straggler, 102));
    straggler.every = 0;
    cr_expect_not(__real_train_straggler_due(&straggler, 1000), "off");
}

Test(straggler, does_not_exist_alone)
{
    harness_t harness;
    train_outcome_t out;

    run_open(&harness, NULL);
    every_step = true;
    harness_run_ok(&harness, 1, &out);
    cr_expect_eq(looks, 0);
    harness_close(&harness);
}
