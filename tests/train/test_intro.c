/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/intro.h"

#include <criterion/criterion.h>
#include <string.h>

Test(intro, names_the_cores_of_the_job_that_are_idle)
{
    char why[256] = "";

    cr_assert(train_intro_idle("128(x2),64", 4, 1, why, sizeof why));
    cr_expect_not_null(strstr(why, "4 of the 128 cores"), "%s", why);
    cr_expect_not_null(strstr(why, "4 ranks of 1 core)"), "%s", why);
    cr_expect_not_null(strstr(why, "--cpus-per-task"), "%s", why);
    cr_assert(train_intro_idle("128", 1, 63, why, sizeof why));
    cr_expect_not_null(strstr(why, "1 rank of 63 cores)"), "%s", why);
}

Test(intro, one_of_two_hardware_threads_is_enough)
{
    char why[256];

    cr_expect_not(train_intro_idle("128", 2, 32, why, sizeof why));
    cr_expect_not(train_intro_idle("2(x2)", 2, 1, why, sizeof why));
    cr_expect_not(train_intro_idle(NULL, 1, 1, why, sizeof why));
    cr_expect_not(train_intro_idle("", 1, 1, why, sizeof why));
}
