/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Clocks and links between two hosts, as far as one machine can show them: the
 * clock of the second one, which has the ranks from 2 on, is made to be wrong.
 */
#include "train/clocks.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "lib/ranks.h"
#include "train/links.h"

/* These replace functions of this program; see local.mk. */
double __real_clock_now(void);
double __wrap_clock_now(void);
err_code_t __real_comm_allgather(comm_group_t *group, const void *mine,
                                 size_t bytes, void *all, err_t *err);
err_code_t __wrap_comm_allgather(comm_group_t *group, const void *mine,
                                 size_t bytes, void *all, err_t *err);

static double wrong; /* seconds by which this process's clock is ahead */
static int gathers;  /* calls of comm_allgather so far */
static int slow;     /* the first [slow] calls take a millisecond more */

double __wrap_clock_now(void)
{
    return __real_clock_now() + wrong;
}

err_code_t __wrap_comm_allgather(comm_group_t *group, const void *mine,
                                 size_t bytes, void *all, err_t *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    if (gathers++ < slow)
        nanosleep(&pause, NULL);
    return __real_comm_allgather(group, mine, bytes, all, err);
}

/* Seconds after which a test is taken to hang. */
TestSuite(clocks, .init = ranks_transports, .timeout = 300);

#define WRONG 1000.0
#define PATIENCE 5
#define ROUNDS 64 /* messages before the ranks compare again */

static err_code_t group_open(const comm_oob_t *oob, const char *second,
                             comm_group_t **out, err_t *err)
{
    const comm_config_t config = {.backend = "ucx", .timeout = 120};
    comm_oob_t pretended = *oob;

    pretended.host = oob->rank >= 2 ? second : "left";
    return comm_group_open(&config, &pretended, out, err);
}

/* Compare the clocks of two hosts. [second] is the name of the second one, and
 * its first [late] messages take a millisecond more. */
static int hosts_compare(const comm_oob_t *oob, const char *second, int late,
                         double patience, comm_group_t **group,
                         train_clock_t *out)
{
    double room[3 * RANKS_MAX];
    err_t err = ERR_INIT;

    wrong = oob->rank >= 2 ? WRONG : 0;
    RANKS_OK(group_open(oob, second, group, &err), err);
    slow = oob->rank >= 2 ? late : 0;
    gathers = 0;
    RANKS_OK(train_clocks_compare(*group, patience, room, out, &err), err);
    return 0;
}

static int compare(const comm_oob_t *oob, void *argument)
{
    double shifts[RANKS_MAX];
    comm_group_t *group;
    train_clock_t clock;
    err_t err = ERR_INIT;

    RANKS_CHECK(hosts_compare(oob, argument, 0, PATIENCE, &group, &clock) == 0);
    RANKS_OK(comm_allgather(group, &clock.shift, sizeof(double), shifts, &err),
             err);
    if (oob->rank >= 2) {
        /* The ranks of a host have one clock. */
        RANKS_CHECK(shifts[2] == shifts[3] && shifts[3] == shifts[4]);
        fprintf(stderr, "the shift is %.6f s, give or take %.1f us\n",
                clock.shift, 1e6 * clock.doubt);
        RANKS_CHECK(clock.doubt > 0);
        RANKS_CHECK(fabs(clock.shift + WRONG) <= clock.doubt);
        /* Only a machine that stands still takes so long. */
        RANKS_CHECK(clock.doubt < 10);
    } else {
        RANKS_CHECK(clock.shift == 0 && clock.doubt == 0);
    }
    comm_group_close(group);
    return 0;
}

Test(clocks, of_another_host_are_shifted)
{
    char right[] = "right";
    int results[5];

    cr_assert_eq(ranks_forks(5, 240, compare, right, results), 0);
}

/* The first messages from the second host take a millisecond, so further ones
 * follow. */
static int compare_in_doubt(const comm_oob_t *oob, void *argument)
{
    comm_group_t *group;
    train_clock_t clock;

    RANKS_CHECK(
        hosts_compare(oob, argument, ROUNDS, PATIENCE, &group, &clock) == 0);
    fprintf(stderr, "%d messages, give or take %.1f us\n", gathers,
            1e6 * clock.doubt);
    RANKS_CHECK(gathers > 2 * ROUNDS);
    if (oob->rank >= 2)
        RANKS_CHECK(fabs(clock.shift + WRONG) <= clock.doubt);
    comm_group_close(group);
    return 0;
}

Test(clocks, are_compared_again_if_in_doubt)
{
    char right[] = "right";
    int results[3];

    cr_assert_eq(ranks_forks(3, 240, compare_in_doubt, right, results), 0);
}

static int compare_once(const comm_oob_t *oob, void *argument)
{
    comm_group_t *group;
    train_clock_t clock;

    RANKS_CHECK(hosts_compare(oob, argument, 2 * ROUNDS, 0, &group, &clock) ==
                0);
    RANKS_CHECK(gathers > ROUNDS && gathers < 2 * ROUNDS);
    comm_group_close(group);
    return 0;
}

Test(clocks, are_compared_once_without_patience)
{
    char right[] = "right";
    int results[3];

    cr_assert_eq(ranks_forks(3, 240, compare_once, right, results), 0);
}

static int measure(const comm_oob_t *oob, void *argument)
{
    static const int leads[] = {0, 2};
    double seconds[2] = {-1, -1};
    comm_group_t *group;
    err_t err = ERR_INIT;

    RANKS_OK(group_open(oob, argument, &group, &err), err);
    for (int i = 0; i < 2; i++)
        RANKS_OK(train_links_measure(group, leads, 2, seconds, &err), err);
    if (oob->rank != 1)
        RANKS_CHECK(seconds[0] > 0 && seconds[1] > 0);
    RANKS_OK(comm_barrier(group, &err), err);
    comm_group_close(group);
    return 0;
}

Test(clocks, links_are_measured_by_the_first_rank_of_each_host)
{
    char right[] = "right";
    int results[3];

    cr_assert_eq(ranks_forks(3, 240, measure, right, results), 0);
}
