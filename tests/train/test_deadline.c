/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>
#include <math.h>

#include "train/deadline.h"

/* The end is the instant 1000. It became known [left] seconds earlier. */
static train_deadline_t with_end(double left)
{
    const slurm_limits_t limits = {.end = 1000.0, .kill_wait = 30.0};
    train_deadline_t deadline = train_deadline(60.0);

    train_deadline_limits(&deadline, &limits, 1000.0 - left);
    return deadline;
}

Test(deadline, none)
{
    train_deadline_t deadline = train_deadline(60.0);
    const slurm_limits_t limits = slurm_limits_none();

    train_deadline_step(&deadline, 10.0);
    cr_assert(isinf(train_deadline_instant(&deadline, true)));
    train_deadline_limits(&deadline, &limits, 0.0);
    cr_assert(isinf(train_deadline_instant(&deadline, true)));
    cr_assert_eq(deadline.reserve, 60.0);
}

/* 2 x slowest step + 1.5 x slowest save + 15 s. */
Test(deadline, slowest_step_and_save)
{
    train_deadline_t deadline = with_end(900.0);

    train_deadline_step(&deadline, 7.0);
    train_deadline_step(&deadline, 3.0);
    train_deadline_save(&deadline, 4.0);
    train_deadline_save(&deadline, 20.0);
    cr_assert_eq(train_deadline_instant(&deadline, true), 1000.0 - 59.0);
}

Test(deadline, reserve_until_a_save_was_measured)
{
    train_deadline_t deadline = with_end(900.0);

    train_deadline_step(&deadline, 7.0);
    cr_assert_eq(train_deadline_instant(&deadline, true), 1000.0 - 89.0);
    train_deadline_save(&deadline, 0.1);
    cr_assert_float_eq(train_deadline_instant(&deadline, true), 1000.0 - 29.15,
                       1e-9);
}

/* Without measured times the reserve is a guess, which must not be all the time
 * of a short job. */
Test(deadline, reserve_of_a_short_job)
{
    train_deadline_t deadline = with_end(50.0);

    cr_assert_eq(train_deadline_instant(&deadline, true), 1000.0 - 40.0);
    deadline = with_end(-5.0);
    cr_assert_eq(train_deadline_instant(&deadline, true), 1000.0 - 15.0);
}

/* Before the first step there is nothing to save. */
Test(deadline, start_up)
{
    train_deadline_t deadline = with_end(900.0);

    train_deadline_save(&deadline, 40.0);
    cr_assert_eq(train_deadline_instant(&deadline, false), 1000.0 - 15.0);
}

Test(deadline, sigterm_leaves_kill_wait)
{
    train_deadline_t deadline = {.limits = {.end = 1000.0, .kill_wait = 30.0}};
    train_deadline_t sooner = train_deadline_after_term(&deadline, 100.0);

    cr_assert_float_eq(sooner.limits.end, 130.0, 1e-9);
    cr_assert_float_eq(train_deadline_spare(&sooner, 60.0, false, 100.0), 15.0,
                       1e-9, "15 s are kept for the end of the run");
    sooner = train_deadline_after_term(&deadline, 990.0);
    cr_assert_float_eq(sooner.limits.end, 1000.0, 1e-9);
    deadline.limits.kill_wait = NAN;
    sooner = train_deadline_after_term(&deadline, 100.0);
    cr_assert_float_eq(sooner.limits.end, 1000.0, 1e-9);
}

Test(deadline, kill_wait_is_too_short_once)
{
    train_deadline_t deadline = with_end(900.0);

    cr_assert_not(train_deadline_kill_wait(&deadline, 20.0));
    cr_assert(train_deadline_kill_wait(&deadline, 20.1));
    cr_assert_not(train_deadline_kill_wait(&deadline, 20.1));
    deadline = train_deadline(60.0);
    cr_assert_not(train_deadline_kill_wait(&deadline, 1000.0),
                  "it is not known");
}

/* Follow the rule step by step: a run that leaves when the rule says so has
 * written its checkpoint before the end. Steps take as long as measured, the
 * save takes 1.5 times as long as measured. */
Test(deadline, leaves_in_time)
{
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 20; k++) {
            const double step = 0.01 * pow(1.7, i), save = 0.01 * pow(1.7, k);
            train_deadline_t deadline = with_end(900.0);
            double now = 100.0;
            bool leaves = false;

            train_deadline_save(&deadline, save);
            train_deadline_step(&deadline, step);
            while (!leaves) {
                leaves = now >= train_deadline_instant(&deadline, true);
                now += step;
            }
            if (2 * step + 1.5 * save < 885.0)
                cr_assert_leq(now + 1.5 * save, 1000.0, "step %g, save %g",
                              step, save);
        }
}

/* A save in progress may take as long as is kept for one. */
Test(deadline, the_rest_of_a_save)
{
    train_deadline_t deadline = with_end(900.0);

    cr_assert_eq(train_deadline_rest(&deadline, 20.0, false), 40.0);
    train_deadline_save(&deadline, 4.0);
    cr_assert_eq(train_deadline_rest(&deadline, 0.0, false), 6.0);
    cr_assert_eq(train_deadline_rest(&deadline, 5.0, false), 1.0);
    cr_assert_eq(train_deadline_rest(&deadline, 7.0, false), 0.0);
}

/* A run that leaves waits for a local save, too. It usually waits for a shorter
 * time. */
Test(deadline, the_rest_of_a_local_save)
{
    train_deadline_t deadline = with_end(900.0);

    cr_assert_eq(train_deadline_rest(&deadline, 20.0, true), 40.0);
    train_deadline_save(&deadline, 40.0);
    cr_assert_eq(train_deadline_rest(&deadline, 20.0, true), 40.0);
    train_deadline_local(&deadline, 4.0);
    train_deadline_local(&deadline, 2.0);
    cr_assert_eq(train_deadline_rest(&deadline, 5.0, true), 1.0);
    cr_assert_eq(train_deadline_rest(&deadline, 7.0, true), 0.0);
    cr_assert_eq(train_deadline_rest(&deadline, 5.0, false), 55.0);
}

/* A checkpoint needs 1.5 x the time of the slowest save, and the end of the run
 * needs 15 s. */
Test(deadline, seconds_to_spare)
{
    train_deadline_t deadline = train_deadline(60.0);

    cr_assert_eq(train_deadline_spare(&deadline, 5.0, true, 0.0), 5.0);
    deadline = with_end(900.0);
    train_deadline_save(&deadline, 4.0);
    cr_assert_eq(train_deadline_spare(&deadline, 5.0, true, 900.0), 5.0);
    cr_assert_eq(train_deadline_spare(&deadline, 5.0, true, 976.0), 3.0);
    cr_assert_eq(train_deadline_spare(&deadline, 5.0, true, 990.0), 0.0);
    cr_assert_eq(train_deadline_spare(&deadline, 30.0, false, 980.0), 5.0);
    cr_assert_eq(train_deadline_spare(&deadline, 30.0, false, 1001.0), 0.0);
}
