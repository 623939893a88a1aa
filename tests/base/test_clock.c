/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/clock.h"

#include <criterion/criterion.h>
#include <time.h>

/* The system's seconds, which the clock is compared with. */
static double system_seconds(void)
{
    struct timespec now;

    cr_assert_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* These tests sleep because time itself is what they measure. */
static void let_pass(long milliseconds)
{
    struct timespec pause = {.tv_nsec = milliseconds * 1000000};

    nanosleep(&pause, NULL);
}

Test(clock, now_goes_on_in_seconds)
{
    double outer = system_seconds(), begin = clock_now(), passed;

    let_pass(20);
    passed = clock_now() - begin;
    outer = system_seconds() - outer;
    cr_assert(passed >= 0.02 && passed < outer + 1e-6, "%g of %g s", passed,
              outer);
}

/* Criterion forks for each test without exec, so the process start is that of
 * the program or later. The kernel counts in 1/100 seconds. */
Test(clock, since_start_is_small_and_grows)
{
    double before = clock_since_start(), after;

    let_pass(50);
    after = clock_since_start();
    cr_assert(before >= 0 && before < 600, "%g s", before);
    cr_assert(after >= before + 0.03, "%g s, then %g s", before, after);
}

Test(clock, wall_is_the_time_of_the_system)
{
    struct timespec before, after;
    double wall;

    clock_gettime(CLOCK_REALTIME, &before);
    wall = clock_wall();
    clock_gettime(CLOCK_REALTIME, &after);
    cr_assert(wall > (double)before.tv_sec - 0.01, "%f", wall);
    cr_assert(wall < (double)after.tv_sec + 1.01, "%f", wall);
}

Test(clock, instants_are_written_in_utc)
{
    char out[32];

    cr_assert_str_eq(clock_format(0, out, sizeof out), "1970-01-01T00:00:00Z");
    cr_assert_str_eq(clock_format(1935742830.9, out, sizeof out),
                     "2031-05-05T10:20:30Z");
    cr_assert_str_eq(clock_format(0, out, 5), "");
}
