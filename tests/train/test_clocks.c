/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Clocks and links between two hosts, as far as one machine can show them: the
 * clock of the second one, which has the ranks from 2 on, is made to be wrong.
 */
#include "train/clocks.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "lib/ranks.h"
#include "train/links.h"

/* Replaces clock_now in this program; see local.mk. */
double __real_clock_now(void);
double __wrap_clock_now(void);

static double wrong; /* seconds by which this process's clock is ahead */

double __wrap_clock_now(void)
{
    return __real_clock_now() + wrong;
}

/* Seconds after which a test is taken to hang. */
TestSuite(clocks, .init = ranks_transports, .timeout = 300);

#define WRONG 1000.0

static err_code_t group_open(const comm_oob_t *oob, const char *second,
                             comm_group_t **out, err_t *err)
{
    const comm_config_t config = {.backend = "ucx", .timeout = 120};
    comm_oob_t pretended = *oob;

    pretended.host = oob->rank >= 2 ? second : "left";
    return comm_group_open(&config, &pretended, out, err);
}

/* The second host is called [argument]. */
static int compare(const comm_oob_t *oob, void *argument)
{
    double room[2 * RANKS_MAX], shifts[RANKS_MAX];
    comm_group_t *group;
    train_clock_t clock;
    err_t err = ERR_INIT;

    wrong = oob->rank >= 2 ? WRONG : 0;
    RANKS_OK(group_open(oob, argument, &group, &err), err);
    RANKS_OK(train_clocks_compare(group, room, &clock, &err), err);
    RANKS_OK(comm_allgather(group, &clock.shift, sizeof(double), shifts, &err),
             err);
    if (oob->rank >= 2) {
        /* The ranks of a host have one clock. */
        RANKS_CHECK(shifts[2] == shifts[3] && shifts[3] == shifts[4]);
        fprintf(stderr, "the shift is %.6f s, give or take %.1f us\n",
                clock.shift, 1e6 * clock.doubt);
        RANKS_CHECK(clock.doubt > 0);
        RANKS_CHECK(clock.shift + WRONG <= clock.doubt);
        RANKS_CHECK(clock.shift + WRONG >= -clock.doubt);
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
