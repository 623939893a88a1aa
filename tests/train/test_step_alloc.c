/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A step allocates nothing: this program counts the calls of malloc and
 * related functions by the training thread between two looks for a signal,
 * which happen once a step.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lib/alloc_count.h"
#include "train/harness.h"

#define STEPS 30

static long counts[STEPS];
static int looks;

/* Count at the looks of steps only. While a run waits for deletes at its end,
 * it also looks for a signal. */
static slurm_signal_t count_at_look(void)
{
    if (looks < STEPS)
        counts[looks++] = alloc_count();
    return SLURM_SIGNAL_NONE;
}

static void steps_count(const char *mode, const char *threads)
{
    train_outcome_t out;
    harness_t harness;

    if (!alloc_count_works())
        cr_skip("counting malloc needs a build without sanitizers");
    harness_open(&harness, 24 * STEPS);
    harness.signal = count_at_look;
    harness.settings[0] = "train.epochs=1";
    harness.settings[1] = "data.valid=[]";
    harness.settings[2] = mode;
    harness.settings[3] = threads;
    harness_run_ok(&harness, 1, &out);
    cr_assert_eq(looks, STEPS);
    cr_assert_gt(counts[0], 0, "nothing was counted at all");
    for (int s = 3; s < looks; s++)
        cr_assert_eq(counts[s], counts[s - 1], "step %d allocated %ld times", s,
                     counts[s] - counts[s - 1]);
    harness_close(&harness);
}

Test(step, allocates_nothing)
{
    steps_count(NULL, NULL);
}

Test(step, of_leaves_side_by_side_allocates_nothing)
{
    steps_count("train={epochs: 1, batch: 24, reproducible: true, "
                "microbatch: 4}",
                "train.threads=2");
}

/* The file is written after the last step. */
Test(step, that_is_traced_allocates_nothing)
{
    steps_count("obs={trace: chrome, trace_steps: \"2:30\"}", NULL);
}
