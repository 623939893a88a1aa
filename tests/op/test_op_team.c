/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/team.h"

#include "op/cpu/openmp.h"
#include <criterion/criterion.h>
#include <pthread.h>

#define ITEMS 1001

typedef struct tally {
    int seen[ITEMS];
    int64_t shortest;
} tally_t;

static void count_items(void *context, int64_t first, int64_t last)
{
    tally_t *tally = context;

    for (int64_t i = first; i < last; i++)
        tally->seen[i]++;
    if (last - first < tally->shortest) /* racy, but only ever too large */
        tally->shortest = last - first;
}

Test(op_team, each_item_once)
{
    static const int64_t counts[] = {0, 1, 2, 7, ITEMS};

    for (int threads = 1; threads <= 5; threads++)
        for (int c = 0; c < 5; c++)
            for (int64_t grain = 0; grain < 600; grain += 299) {
                tally_t tally = {.shortest = ITEMS};

                cpu_team_run(threads, counts[c], grain, count_items, &tally);
                for (int64_t i = 0; i < ITEMS; i++)
                    cr_assert_eq(tally.seen[i], i < counts[c]);
                if (counts[c] >= grain && threads == 1)
                    cr_assert_eq(tally.shortest, counts[c]);
            }
}

static void *other_thread(void *argument)
{
    int *seen = argument;

    cpu_team_set(3);
    *seen = omp_get_max_threads();
    return NULL;
}

/* The team size belongs to the calling thread: ranks may be threads. */
Test(op_team, size_is_per_thread)
{
    pthread_t thread;
    int seen = 0;

    cpu_team_set(2);
    cr_assert_eq(pthread_create(&thread, NULL, other_thread, &seen), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(seen, 3);
    cr_expect_eq(omp_get_max_threads(), 2);
}
