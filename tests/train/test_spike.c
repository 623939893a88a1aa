/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The score of a loss, compared with the losses of the steps before it. */
#include <criterion/criterion.h>
#include <math.h>

#include "train/spike.h"

static void add(hdf5io_progress_t *progress, int count, double even, double odd)
{
    for (int i = 0; i < count; i++)
        train_spike_add(progress, i % 2 == 0 ? even : odd);
}

Test(spike, few_losses_judge_nothing)
{
    hdf5io_progress_t progress = {0};

    add(&progress, TRAIN_SPIKE_LEAST - 1, 1, 2);
    cr_expect_eq(train_spike_score(&progress, 1e30), 0);
    add(&progress, 1, 2, 2);
    cr_expect_gt(train_spike_score(&progress, 1e30), 1e29);
}

Test(spike, the_score_counts_standard_deviations)
{
    hdf5io_progress_t progress = {0};

    add(&progress, 100, 3, 7);
    cr_expect_eq(train_spike_score(&progress, 5), 0);
    cr_expect_eq(train_spike_score(&progress, 15), 5);
    cr_expect_eq(train_spike_score(&progress, 1), -2);
    cr_expect_eq(train_spike_score(&progress, INFINITY), (double)INFINITY);
}

/* Losses older than the last 200 do not count. */
Test(spike, old_losses_are_dropped)
{
    hdf5io_progress_t progress = {0}, late = {0};

    add(&progress, 300, 100, 900);
    add(&progress, HDF5IO_LOSSES_MAX, 3, 7);
    add(&late, HDF5IO_LOSSES_MAX, 3, 7);
    cr_expect_eq(progress.loss_recent, HDF5IO_LOSSES_MAX);
    cr_expect_arr_eq(progress.losses, late.losses, sizeof late.losses);
    cr_expect_eq(train_spike_score(&progress, 15), 5);
    train_spike_add(&progress, 11);
    cr_expect_eq(progress.losses[0], 7);
    cr_expect_eq(progress.losses[HDF5IO_LOSSES_MAX - 1], 11);
}

/* If the loss hardly changes, its deviation is only that of rounding. */
Test(spike, rounding_is_no_spike)
{
    hdf5io_progress_t progress = {0}, zero = {0};

    add(&progress, 50, 0.5, 0.5);
    cr_expect_eq(train_spike_score(&progress, 0.5), 0);
    cr_expect_lt(train_spike_score(&progress, nextafter(0.5, 1)), 1e-6);
    cr_expect_gt(train_spike_score(&progress, 0.6), 1e5);
    add(&zero, 50, 0, 0);
    cr_expect_eq(train_spike_score(&zero, 0), 0);
    cr_expect_eq(train_spike_score(&zero, 0.1), (double)INFINITY);
}
