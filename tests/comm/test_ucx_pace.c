/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How long who waits looks (src/comm/node/node_backoff.h): with made-up
 * instants, and what a rank does while another one is away. */
#include <criterion/criterion.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "comm/node/node_backoff.h"
#include "comm/node/node_priv.h"
#include "comm/ucx_group.h"
#include "lib/ranks.h"

TestSuite(node_pace, .init = ranks_transports, .timeout = 120);

#define SLICE 4e-3  /* what a program of others gets by a yield */
#define BRIEF 10e-6 /* what a rank gets */

/* ---- made-up instants ---------------------------------------------------- */

Test(node_pace, with_a_core_it_looks_and_then_sleeps)
{
    node_backoff_t pace = {.own_core = true};

    cr_assert_eq(node_backoff_next(&pace, 7), BACKOFF_SPIN);
    cr_assert_eq(node_backoff_next(&pace, 7 + 0.9 * NODE_BACKOFF_SECONDS),
                 BACKOFF_SPIN);
    cr_assert_eq(node_backoff_next(&pace, 7 + 1.1 * NODE_BACKOFF_SECONDS),
                 BACKOFF_SLEEP);
    node_backoff_slept(&pace, true);
    cr_assert_eq(node_backoff_next(&pace, 8), BACKOFF_SPIN, "somebody rang");
    node_backoff_found(&pace);
    cr_assert_eq(node_backoff_next(&pace, 9), BACKOFF_SPIN, "another wait");
    cr_assert_eq(pace.yields, 0);
}

Test(node_pace, who_is_away_is_not_looked_for)
{
    node_backoff_t pace = {.own_core = true};

    for (int i = 0; i < 50; i++) {
        node_backoff_slept(&pace, false);
        cr_assert_eq(node_backoff_next(&pace, i), BACKOFF_SLEEP);
    }
    node_backoff_found(&pace);
    cr_assert_eq(node_backoff_next(&pace, 99), BACKOFF_SPIN);
    pace = (node_backoff_t){0};
    node_backoff_slept(&pace, false);
    cr_assert_eq(node_backoff_next(&pace, 0), BACKOFF_SLEEP);
    cr_assert_eq(pace.yields, 0);
}

/* A wait that ends at the last of [yields] yields, each of which takes [took],
 * or by a sleep; how many yields there were. */
static int wait_pass(node_backoff_t *pace, int yields, double took)
{
    double now = 1;

    for (int i = 1; i <= yields; i++) {
        if (node_backoff_next(pace, now) == BACKOFF_SLEEP) {
            node_backoff_slept(pace, true);
            return i - 1;
        }
        now += took;
        node_backoff_yielded(pace, now);
    }
    node_backoff_found(pace);
    return yields;
}

Test(node_pace, ranks_on_one_core_yield_to_each_other)
{
    node_backoff_t pace = {0};

    for (int i = 0; i < 1000; i++)
        cr_assert_eq(wait_pass(&pace, 3, BRIEF), 3);
    cr_assert_eq(wait_pass(&pace, 1000, BRIEF), NODE_BACKOFF_YIELDS);
    cr_assert_eq(wait_pass(&pace, 3, BRIEF), 3, "in vain once is nothing");
    cr_assert_eq(pace.sleeps, 1);
}

/* Waits until the next one that yields. */
static int rest_of(node_backoff_t *pace)
{
    int waits = 0;

    while (pace->sleeps_left > 0) {
        cr_assert_eq(wait_pass(pace, 1, SLICE), 0);
        waits++;
    }
    return waits;
}

Test(node_pace, beside_others_yields_become_rare)
{
    node_backoff_t pace = {0};

    cr_assert_eq(wait_pass(&pace, 1, SLICE), 1);
    cr_assert_eq(rest_of(&pace), 4);
    for (int rest = 8; rest <= 1024; rest *= 2) {
        cr_assert_eq(wait_pass(&pace, 1, SLICE), 1);
        cr_assert_eq(rest_of(&pace), rest);
    }
    cr_assert_eq(wait_pass(&pace, 1, SLICE), 1);
    cr_assert_eq(rest_of(&pace), 1024, "not more than that");
    for (int i = 0; i < 11; i++) /* the others have gone */
        cr_assert_eq(wait_pass(&pace, 2, BRIEF), 2);
    cr_assert_eq(wait_pass(&pace, 1, SLICE), 1);
    cr_assert_eq(rest_of(&pace), 4, "as in the beginning");
}

/* ---- a rank that waits --------------------------------------------------- */

#define AWAY 0.4 /* seconds: many naps */

static double process_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Rank 0 has slept; what its process has computed meanwhile. */
static int watch_first(const comm_group_t *base)
{
    const ucx_group_t *group = (const ucx_group_t *)base;
    pid_t first = (pid_t)base->hellos[0].pid;
    double end = clock_now() + 20, before;
    clockid_t clock;

    while (atomic_load(&group->node->control->sleepers) == 0)
        RANKS_CHECK(clock_now() < end);
    RANKS_CHECK(clock_getcpuclockid(first, &clock) == 0);
    before = process_seconds(clock);
    RANKS_CHECK(poll(NULL, 0, (int)(AWAY * 1000)) == 0);
    RANKS_CHECK(process_seconds(clock) - before < AWAY / 4);
    return 0;
}

/* Rank 0 waits for rank 1, which is away, as if each had a core or not. */
static int run_away(const comm_oob_t *oob, void *argument)
{
    const bool *own_core = argument;
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_group_t *base;
    node_backoff_t *pace;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &base, &err), err);
    pace = &((ucx_group_t *)base)->node->backoff;
    *pace = (node_backoff_t){.own_core = *own_core};
    if (oob->rank == 1 && watch_first(base))
        return 1;
    RANKS_OK(comm_barrier(base, &err), err);
    RANKS_CHECK(oob->rank == 1 || pace->sleeps > 5);
    RANKS_CHECK(oob->rank == 1 || (pace->yields == 0) == *own_core);
    comm_group_close(base);
    return 0;
}

Test(node_pace, a_rank_that_waits_sleeps)
{
    int results[RANKS_MAX];
    bool core = true;

    cr_assert_eq(ranks_forks(2, 60, run_away, &core, results), 0);
    core = false;
    cr_assert_eq(ranks_forks(2, 60, run_away, &core, results), 0);
}
