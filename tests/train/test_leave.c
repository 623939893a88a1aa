/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs that are told to leave before their first step. Runs that watch the time
 * are in tests/slurm/time.t. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

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
