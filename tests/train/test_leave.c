/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs that are told to leave before their first step, and the warning of a
 * short KillWait. Runs that watch the time are in tests/slurm/time.t. */
#include "train/leave.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "train/harness.h"

#define SAMPLES 101

/* How often the ranks look for a signal in start-up until one finds it. */
static atomic_int start_looks;

static slurm_signal_t signal_in_start(void)
{
    return atomic_fetch_sub(&start_looks, 1) <= 1 ? SLURM_SIGNAL_TERM
                                                  : SLURM_SIGNAL_NONE;
}

/* A signal at any point of the start-up ends the run without a step or a
 * checkpoint, and does not change the next start. */
Test(leave, a_signal_in_start_up_ends_it, .timeout = 120)
{
    train_outcome_t straight, out;
    harness_t harness;
    err_code_t rc;
    int starts = 0;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &straight);
    harness_close(&harness);
    harness_open(&harness, SAMPLES);
    harness.signal_start = signal_in_start;
    do {
        err_t err = ERR_INIT;

        atomic_store(&start_looks, ++starts);
        rc = harness_run(&harness, 2, &out, &err);
        cr_assert(rc == ERR_OK || out.step == 0, "step %lld",
                  (long long)out.step);
        cr_assert(rc == ERR_OK ||
                      strstr(err.text, "before the first step") != NULL,
                  "%s", err.text);
    } while (rc == ERR_REQUEUE);
    cr_assert_eq(rc, ERR_OK);
    cr_assert_gt(starts, 6, "%d starts", starts);
    cr_assert_eq(memcmp(&out.loss, &straight.loss, sizeof(double)), 0);
    harness_close(&harness);
}

/* ---- KillWait ------------------------------------------------------------ */

static int warnings;

static void warning_count(void *context, log_level_t level, int rank,
                          const char *module, const char *text)
{
    (void)context;
    (void)rank;
    (void)module;
    warnings += level == LOG_WARN && strstr(text, "KillWait") != NULL;
}

/* Return how often a life of [job] in the run directory [dir] warns. KillWait
 * is 10 s; there are two checkpoints, of 7 s and of 14 s. */
static int life_warns(const char *dir, const char *id, int restarts)
{
    slurm_job_t job = {.restarts = restarts};
    const train_env_t env = {.job = &job};
    train_state_t run = {.env = &env};

    snprintf(job.id, sizeof job.id, "%s", id);
    run.dir.path = dir;
    run.dir.owned = true;
    run.leave.deadline = train_deadline(60.0);
    run.leave.deadline.limits.kill_wait = 10.0;
    run.leave.known = true;
    warnings = 0;
    train_leave_past(&run);
    train_leave_saved(&run, 7.0);
    train_leave_saved(&run, 14.0);
    return warnings;
}

Test(leave, kill_wait_is_said_once_in_a_job)
{
    char dir[] = "/tmp/cddp-leave-XXXXXX";

    cr_assert_not_null(mkdtemp(dir));
    log_sink_set(warning_count, NULL);
    cr_expect_eq(life_warns(dir, "12", 0), 1);
    cr_expect_eq(life_warns(dir, "12", 0), 0, "a restart in place");
    cr_expect_eq(life_warns(dir, "12", 1), 0, "a requeue");
    cr_expect_eq(life_warns(dir, "13", 0), 1, "another job");
    log_sink_set(NULL, NULL);
    cr_assert_eq(file_remove_tree(dir, NULL), ERR_OK);
}

/* A run that leaves waits for the save in progress, and then for one more. */
Test(leave, kill_wait_has_room_for_the_save_in_progress)
{
    slurm_job_t job = {.id = ""};
    const train_env_t env = {.job = &job};

    log_sink_set(warning_count, NULL);
    for (int behind = 0; behind < 2; behind++) {
        train_state_t run = {.env = &env};

        run.dir.path = "/nonexistent";
        run.leave.deadline = train_deadline(60.0);
        run.leave.deadline.limits.kill_wait = 10.0;
        run.leave.known = true;
        run.saving.behind = behind;
        warnings = 0;
        train_leave_saved(&run, 3.0);
        cr_expect_eq(warnings, 0);
        train_leave_saved(&run, 4.0);
        cr_expect_eq(warnings, behind);
    }
    log_sink_set(NULL, NULL);
}
