/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/clock.h"

#include <criterion/criterion.h>
#include <time.h>

Test(clock, now_goes_on_in_seconds)
{
    struct timespec pause = {.tv_nsec = 20000000};
    double begin = clock_now(), passed;

    nanosleep(&pause, NULL);
    passed = clock_now() - begin;
    cr_assert(passed >= 0.02 && passed < 10, "%g s", passed);
}

/* Criterion forks for each test without exec, so the process start is that of
 * the program or later. The kernel counts in 1/100 seconds. */
Test(clock, since_start_is_small_and_grows)
{
    struct timespec pause = {.tv_nsec = 50000000};
    double before = clock_since_start(), after;

    nanosleep(&pause, NULL);
    after = clock_since_start();
    cr_assert(before >= 0 && before < 600, "%g s", before);
    cr_assert(after >= before + 0.03, "%g s, then %g s", before, after);
}

Test(clock, wall_is_the_time_of_the_system)
{
    cr_assert_float_eq(clock_wall(), (double)time(NULL), 2);
}

Test(clock, instants_are_written_in_utc)
{
    char out[32];

    cr_assert_str_eq(clock_format(0, out, sizeof out), "1970-01-01T00:00:00Z");
    cr_assert_str_eq(clock_format(1935742830.9, out, sizeof out),
                     "2031-05-05T10:20:30Z");
    cr_assert_str_eq(clock_format(0, out, 5), "");
}
