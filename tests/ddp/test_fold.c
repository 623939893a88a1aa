/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Leaves finished in any order, by any number of threads, give the subtrees of
 * the one fixed tree, with the bits of a plain recursion over it. With as many
 * slots as ddp_fold_slots returns, no thread waits for ever.
 */
#include "ddp/fold.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "base/crew.h"
#include "base/rng.h"

#define LEAVES 40
#define UNDER_WAY 6

typedef struct bench {
    ddp_fold_t *fold;
    double sums[LEAVES];
} bench_t;

static double leaf_value(int64_t leaf)
{
    rng_t rng;

    rng_open(&rng, 3, RNG_INIT, (uint64_t)leaf, 0);
    return rng_normal(&rng);
}

static err_code_t slots_add(void *context, void *thread, int to, int from,
                            err_t *err)
{
    bench_t *bench = context;

    (void)thread;
    (void)err;
    ddp_fold_sum(&bench->sums[to], &bench->sums[from], 1, COMM_FLOAT64);
    return ERR_OK;
}

static void bench_open(bench_t *bench, int slots)
{
    err_t err = ERR_INIT;

    memset(bench, 0, sizeof *bench);
    cr_assert_eq(ddp_fold_open(slots, slots_add, bench, &bench->fold, &err),
                 ERR_OK, "%s", err.text);
}

/* The tree sum as comm.h describes it. */
static double tree_sum(int64_t a, int64_t b)
{
    int64_t half = 1;

    if (b - a == 1)
        return leaf_value(a);
    while (half * 2 < b - a)
        half *= 2;
    return tree_sum(a, a + half) + tree_sum(a + half, b);
}

/* Check the subtrees of the leaves [first, first + held) of [leaves]. */
static void bench_check(const bench_t *bench, int64_t first, int64_t held,
                        int64_t leaves)
{
    int slots[LEAVES];
    int count = ddp_fold_views(bench->fold, slots);
    int64_t at = first;

    cr_assert_eq(count, comm_tree_views(first, held, leaves));
    for (int i = 0; i < count; i++) {
        int64_t end = comm_tree_view_end(at, first + held, leaves);
        double sum = bench->sums[slots[i]], want = tree_sum(at, end);

        cr_assert_eq(memcmp(&sum, &want, sizeof sum), 0,
                     "leaves %lld to %lld of %lld", (long long)at,
                     (long long)end, (long long)leaves);
        at = end;
    }
    cr_assert_eq(at, first + held);
    cr_assert(held == 0 || slots[0] == 0, "the first leaf had slot 0");
}

Test(fold, any_order_gives_the_bits_of_the_tree)
{
    bench_t bench;
    rng_t rng;

    bench_open(&bench, LEAVES);
    rng_open(&rng, 9, RNG_INIT, 0, 0);
    for (int64_t held = 0; held <= LEAVES; held++) {
        ddp_leaf_t under[UNDER_WAY];
        int count = 0;
        bool more = true;

        ddp_fold_begin(bench.fold, LEAVES - held, held, LEAVES);
        while (more || count > 0) {
            if (more &&
                (count == 0 || (count < UNDER_WAY && rng_below(&rng, 3) > 0))) {
                more = ddp_fold_claim(bench.fold, &under[count]);
                if (more)
                    count++;
            } else {
                int pick = (int)rng_below(&rng, (uint64_t)count);
                ddp_leaf_t leaf = under[pick];

                bench.sums[leaf.slot] = leaf_value(leaf.number);
                under[pick] = under[--count];
                ddp_fold_done(bench.fold, &leaf, NULL, NULL);
            }
        }
        bench_check(&bench, LEAVES - held, held, LEAVES);
    }
    ddp_fold_close(bench.fold);
}

static void work_do(void *context, int member)
{
    bench_t *bench = context;
    ddp_leaf_t leaf;

    while (ddp_fold_claim(bench->fold, &leaf)) {
        bench->sums[leaf.slot] = leaf_value(leaf.number);
        /* Threads take different times, so that leaves finish out of order. */
        for (int i = 0; i < member + (int)(leaf.number % 3); i++)
            sched_yield();
        ddp_fold_done(bench->fold, &leaf, NULL, NULL);
    }
}

Test(fold, threads_do_with_the_announced_slots, .timeout = 60)
{
    for (int threads = 1; threads <= 4; threads++) {
        crew_t *crew = NULL;
        err_t err = ERR_INIT;

        cr_assert_eq(crew_open(threads, "fold", &crew, &err), ERR_OK);
        for (int64_t leaves = 1; leaves <= LEAVES; leaves++) {
            int64_t first = leaves / 3;
            int64_t held = leaves - first;
            bench_t bench;

            bench_open(&bench, ddp_fold_slots(first, held, leaves, threads));
            for (int step = 0; step < 5; step++) {
                ddp_fold_begin(bench.fold, first, held, leaves);
                crew_run(crew, work_do, &bench);
                bench_check(&bench, first, held, leaves);
            }
            ddp_fold_close(bench.fold);
        }
        crew_close(crew);
    }
}

/* Member 1 waits for a slot or comes too late; in both cases it returns. */
static void stop_early(void *context, int member)
{
    bench_t *bench = context;
    ddp_leaf_t leaf;

    if (!ddp_fold_claim(bench->fold, &leaf))
        return;
    cr_assert_eq(leaf.number, 0, "member %d", member);
    sched_yield();
    ddp_fold_stop(bench->fold);
}

Test(fold, a_stop_sends_home_who_waits, .timeout = 60)
{
    crew_t *crew = NULL;
    err_t err = ERR_INIT;
    ddp_leaf_t leaf;
    bench_t bench;

    bench_open(&bench, 1);
    cr_assert_eq(crew_open(2, "fold", &crew, &err), ERR_OK);
    for (int i = 0; i < 100; i++) {
        ddp_fold_begin(bench.fold, 0, 4, 4);
        crew_run(crew, stop_early, &bench);
        cr_assert_not(ddp_fold_claim(bench.fold, &leaf));
    }
    crew_close(crew);
    ddp_fold_close(bench.fold);
}

/* At most two slots per level, and one for each leaf in progress. */
Test(fold, slots_grow_with_the_logarithm)
{
    for (int64_t leaves = 1; leaves <= 130; leaves++)
        for (int64_t first = 0; first < leaves; first += 3)
            for (int threads = 1; threads <= 8; threads++) {
                int levels = 0;

                while ((int64_t)1 << levels < leaves + 1)
                    levels++;
                cr_assert_leq(
                    ddp_fold_slots(first, leaves - first, leaves, threads),
                    2 * levels + threads);
            }
    cr_assert_eq(ddp_fold_slots(0, 1, 1, 1), 1);
    cr_assert_eq(ddp_fold_slots(0, 1, 1, 4), 1);
    cr_assert_eq(ddp_fold_slots(0, 0, 4, 2), 1);
    cr_assert_eq(ddp_fold_slots(0, 8, 8, 1), 4);
    cr_assert_eq(ddp_fold_slots(0, 8, 8, 4), 6);
}
