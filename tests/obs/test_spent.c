/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/spent.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(spent, every_interval_has_one_kind)
{
    obs_spent_t spent = {.mark = 100};

    obs_spent_mark(&spent, OBS_SPENT_START, 102);
    obs_spent_step(&spent, &(obs_spent_step_t){1, 2, 4, 0.5}, 112);
    obs_spent_mark(&spent, OBS_SPENT_EVAL, 113);
    obs_spent_mark(&spent, OBS_SPENT_EVAL, 113);
    cr_expect_eq(spent.seconds[OBS_SPENT_START], 2);
    cr_expect_eq(spent.seconds[OBS_SPENT_DATA], 1);
    cr_expect_eq(spent.seconds[OBS_SPENT_FORWARD], 2);
    cr_expect_eq(spent.seconds[OBS_SPENT_BACKWARD], 4);
    cr_expect_eq(spent.seconds[OBS_SPENT_COMM], 0.5);
    cr_expect_eq(spent.seconds[OBS_SPENT_UPDATE], 2.5);
    cr_expect_eq(spent.seconds[OBS_SPENT_EVAL], 1);
    cr_expect_eq(obs_spent_total(&spent), 13);
}

Test(spent, parts_never_exceed_their_step)
{
    obs_spent_t spent = {.mark = 100};

    obs_spent_step(&spent, &(obs_spent_step_t){3, 1, 0, 0}, 102);
    cr_expect_eq(spent.seconds[OBS_SPENT_DATA], 1.5);
    cr_expect_eq(spent.seconds[OBS_SPENT_FORWARD], 0.5);
    cr_expect_eq(spent.seconds[OBS_SPENT_UPDATE], 0);
    obs_spent_step(&spent, &(obs_spent_step_t){0}, 101);
    cr_expect_eq(obs_spent_total(&spent), 2, "time does not go back");
}

Test(spent, a_later_start_goes_on)
{
    const obs_spent_t before = {
        .seconds = {[OBS_SPENT_FORWARD] = 7, [OBS_SPENT_LOST] = 1},
        .wall = 1000};
    obs_spent_t spent = {.seconds = {[OBS_SPENT_FORWARD] = 2}};

    obs_spent_continue(&spent, &before, 1030, 0);
    cr_expect_eq(spent.seconds[OBS_SPENT_FORWARD], 9);
    cr_expect_eq(spent.seconds[OBS_SPENT_LOST], 31);
    obs_spent_continue(&spent, &before, 1030, 1);
    cr_expect_eq(spent.seconds[OBS_SPENT_LOST], 32, "the run was complete");
}

Test(spent, the_table_has_a_line_for_each_kind_and_the_sum)
{
    const obs_spent_t spent = {
        .seconds = {[OBS_SPENT_START] = 1, [OBS_SPENT_LOST] = 3}};
    obs_spent_t all = {.mark = 0};
    char table[OBS_SPENT_TABLE];

    cr_expect_str_eq(obs_spent_format(&spent, table, sizeof table),
                     "  start-up                      1.0 s  25.0 %\n"
                     "  lost to restarts              3.0 s  75.0 %\n"
                     "  wall time                     4.0 s 100.0 %\n");
    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        all.seconds[kind] = 1e9;
    obs_spent_format(&all, table, sizeof table);
    cr_expect_not_null(strstr(table, "wall time"));
    cr_expect_eq(table[strlen(table) - 1], '\n');
}

Test(spent, durations_have_two_units_at_most)
{
    const struct {
        double seconds;
        const char *text;
    } cases[] = {{0.4, "0 s"},
                 {99, "99 s"},
                 {100, "2 min"},
                 {5999, "100 min"},
                 {6000, "1 h 40 min"},
                 {172799, "47 h 59 min"},
                 {172800, "2 d 00 h"},
                 {1e6, "11 d 13 h"},
                 {INFINITY, "?"},
                 {NAN, "?"},
                 {-1, "?"}};
    char text[32];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(
            obs_duration_format(cases[i].seconds, text, sizeof text),
            cases[i].text);
}
