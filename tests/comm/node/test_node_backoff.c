/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How long a waiting rank spins (src/comm/node/node_backoff.h): with simulated
 * time, and the processor time that a rank uses while another one is away. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "comm/node/node_control.h"
#include "comm/node/node_ranks.h"

TestSuite(node_backoff, .timeout = 120);

#define SLICE 4e-3  /* duration of a yield to another program, in seconds */
#define BRIEF 10e-6 /* duration of a yield to another rank, in seconds */

/* ---- made-up instants ---------------------------------------------------- */

Test(node_backoff, with_a_core_it_spins_and_then_sleeps)
{
    node_backoff_t backoff = {.own_core = true};

    cr_assert_eq(node_backoff_next(&backoff, 7), BACKOFF_SPIN);
    cr_assert_eq(node_backoff_next(&backoff, 7 + 0.9 * NODE_BACKOFF_SECONDS),
                 BACKOFF_SPIN);
    cr_assert_eq(node_backoff_next(&backoff, 7 + 1.1 * NODE_BACKOFF_SECONDS),
                 BACKOFF_SLEEP);
    node_backoff_slept(&backoff, true);
    cr_assert_eq(node_backoff_next(&backoff, 8), BACKOFF_SPIN,
                 "another rank woke it");
    node_backoff_found(&backoff);
    cr_assert_eq(node_backoff_next(&backoff, 9), BACKOFF_SPIN, "another wait");
    cr_assert_eq(backoff.yields, 0);
}

Test(node_backoff, it_does_not_spin_for_a_rank_that_is_away)
{
    node_backoff_t backoff = {.own_core = true};

    for (int i = 0; i < 50; i++) {
        node_backoff_slept(&backoff, false);
        cr_assert_eq(node_backoff_next(&backoff, i), BACKOFF_SLEEP);
    }
    node_backoff_found(&backoff);
    cr_assert_eq(node_backoff_next(&backoff, 99), BACKOFF_SPIN);
    backoff = (node_backoff_t){0};
    node_backoff_slept(&backoff, false);
    cr_assert_eq(node_backoff_next(&backoff, 0), BACKOFF_SLEEP);
    cr_assert_eq(backoff.yields, 0);
}

/* A wait that ends at yield number [yields], or earlier by a sleep; each yield
 * takes [took] seconds. Returns the number of yields. */
static int wait_pass(node_backoff_t *backoff, int yields, double took)
{
    double now = 1;

    for (int i = 1; i <= yields; i++) {
        if (node_backoff_next(backoff, now) == BACKOFF_SLEEP) {
            node_backoff_slept(backoff, true);
            return i - 1;
        }
        now += took;
        node_backoff_yielded(backoff, now);
    }
    node_backoff_found(backoff);
    return yields;
}

Test(node_backoff, ranks_on_one_core_yield_to_each_other)
{
    node_backoff_t backoff = {0};

    for (int i = 0; i < 1000; i++)
        cr_assert_eq(wait_pass(&backoff, 3, BRIEF), 3);
    cr_assert_eq(wait_pass(&backoff, 1000, BRIEF), NODE_BACKOFF_YIELDS);
    cr_assert_eq(wait_pass(&backoff, 3, BRIEF), 3, "in vain once is nothing");
    cr_assert_eq(backoff.sleeps, 1);
}

/* Count the waits that sleep at once, until a wait yields again. */
static int rest_of(node_backoff_t *backoff)
{
    int waits = 0;

    while (backoff->sleeps_left > 0) {
        cr_assert_eq(wait_pass(backoff, 1, SLICE), 0);
        waits++;
    }
    return waits;
}

Test(node_backoff, beside_others_yields_become_rare)
{
    node_backoff_t backoff = {0};

    cr_assert_eq(wait_pass(&backoff, 1, SLICE), 1);
    cr_assert_eq(rest_of(&backoff), 4);
    for (int rest = 8; rest <= 1024; rest *= 2) {
        cr_assert_eq(wait_pass(&backoff, 1, SLICE), 1);
        cr_assert_eq(rest_of(&backoff), rest);
    }
    cr_assert_eq(wait_pass(&backoff, 1, SLICE), 1);
    cr_assert_eq(rest_of(&backoff), 1024, "not more than that");
    for (int i = 0; i < 11; i++) /* the other programs have ended */
        cr_assert_eq(wait_pass(&backoff, 2, BRIEF), 2);
    cr_assert_eq(wait_pass(&backoff, 1, SLICE), 1);
    cr_assert_eq(rest_of(&backoff), 4, "as in the beginning");
}

/* ---- a rank that waits --------------------------------------------------- */

#define AWAY 0.4 /* seconds; long enough for many short sleeps */

typedef struct waiting {
    node_ranks_t all;
    clockid_t clock; /* processor time of rank 0's thread */
} waiting_t;

static double clock_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Wait until rank 0 sleeps, then check that it uses little processor time. */
static int watch_first(const waiting_t *what, const node_t *node)
{
    double end = clock_now() + 20, before;

    while (atomic_load(&node->control->sleepers) == 0)
        RANKS_CHECK(clock_now() < end);
    before = clock_seconds(what->clock);
    RANKS_CHECK(poll(NULL, 0, (int)(AWAY * 1000)) == 0);
    RANKS_CHECK(clock_seconds(what->clock) - before < AWAY / 4);
    return 0;
}

/* Rank 0 waits for rank 1, which is away. The backoff assumes a core for each
 * rank, or not. */
static int run_away(const comm_oob_t *oob, void *argument)
{
    waiting_t *what = argument;
    const node_backoff_t *backoff;
    node_rank_t *rank;
    node_work_t *work;

    if (oob->rank == 0)
        RANKS_CHECK(pthread_getcpuclockid(pthread_self(), &what->clock) == 0);
    if (node_rank_open(&what->all, oob, &rank))
        return 1;
    if (oob->rank == 1 && watch_first(what, rank->node))
        return 1;
    work = node_rank_start(rank, NODE_ONESHOT, NULL, 0);
    RANKS_CHECK(node_wait(rank->node, work));
    backoff = &rank->node->backoff;
    RANKS_CHECK(oob->rank == 1 || backoff->sleeps > 5);
    RANKS_CHECK(oob->rank == 1 || (backoff->yields == 0) == what->all.own_core);
    node_rank_close(rank);
    return 0;
}

Test(node_backoff, a_rank_that_waits_sleeps)
{
    for (int core = 0; core < 2; core++) {
        waiting_t what;

        node_ranks_init(&what.all, NULL);
        what.all.own_core = core == 1;
        cr_assert_eq(ranks_threads(2, run_away, &what), 0);
    }
}
