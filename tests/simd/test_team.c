/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simd/team.h"

#include "simd/openmp.h"
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
    if (last - first < tally->shortest) /* a race may only make it too large */
        tally->shortest = last - first;
}

Test(op_team, each_item_once)
{
    static const int64_t counts[] = {0, 1, 2, 7, ITEMS};

    for (int threads = 1; threads <= 5; threads++)
        for (int c = 0; c < 5; c++)
            for (int64_t grain = 0; grain < 600; grain += 299) {
                tally_t tally = {.shortest = ITEMS};

                simd_team_run(threads, counts[c], grain, count_items, &tally);
                for (int64_t i = 0; i < ITEMS; i++)
                    cr_assert_eq(tally.seen[i], i < counts[c]);
                if (counts[c] >= grain && threads == 1)
                    cr_assert_eq(tally.shortest, counts[c]);
            }
}

static void *other_thread(void *argument)
{
    int *seen = argument;

    simd_team_set(3);
    *seen = omp_get_max_threads();
    return NULL;
}

/* Each thread has its own team size, because ranks may be threads. */
Test(op_team, size_is_per_thread)
{
    pthread_t thread;
    int seen = 0;

    simd_team_set(2);
    cr_assert_eq(pthread_create(&thread, NULL, other_thread, &seen), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(seen, 3);
    cr_expect_eq(omp_get_max_threads(), 2);
}

/* The thread that took each item. */
typedef struct takers {
    pthread_t who[ITEMS];
} takers_t;

static void take_items(void *context, int64_t first, int64_t last)
{
    takers_t *takers = context;

    for (int64_t i = first; i < last; i++)
        takers->who[i] = pthread_self();
}

static void member_note(void *context, int member)
{
    ((pthread_t *)context)[member] = pthread_self();
}

static bool one_of(pthread_t thread, const pthread_t *threads, int count)
{
    bool found = false;

    for (int i = 0; i < count; i++)
        found = found || pthread_equal(thread, threads[i]);
    return found;
}

/* During a job the crew is busy, so OpenMP's threads take the items. */
static void job_run(void *context, int member)
{
    if (member == 0)
        simd_team_run(2, ITEMS, 1, take_items, context);
}

Test(op_team, a_crew_that_is_lent_does_the_work)
{
    pthread_t members[3];
    crew_t *crew = NULL;
    err_t err = ERR_INIT;
    takers_t takers;

    cr_assert_eq(crew_open(3, "crew", &crew, &err), ERR_OK, "%s", err.text);
    crew_run(crew, member_note, members);
    simd_team_lend(crew);
    for (int threads = 2; threads <= 3; threads++) {
        simd_team_run(threads, ITEMS, 1, take_items, &takers);
        for (int i = 0; i < ITEMS; i++)
            cr_assert(one_of(takers.who[i], members, threads));
        cr_assert(pthread_equal(takers.who[0], members[0]));
        cr_assert_not(pthread_equal(takers.who[ITEMS - 1], members[0]));
    }
    /* more threads than the crew has */
    simd_team_run(4, ITEMS, 1, take_items, &takers);
    cr_assert_not(one_of(takers.who[ITEMS - 1], members, 3));
    crew_run(crew, job_run, &takers);
    cr_assert_not(one_of(takers.who[ITEMS - 1], members, 3));
    simd_team_lend(NULL);
    simd_team_run(2, ITEMS, 1, take_items, &takers);
    cr_assert_not(one_of(takers.who[ITEMS - 1], members, 3));
    crew_close(crew);
}

static void number_take(void *context, int64_t first, int64_t last)
{
    int *numbers = context;

    for (int64_t i = first; i < last; i++)
        numbers[i] = simd_team_number();
}

/* A team of one thread inside a team: its member has number 0, and afterwards
 * the outer number [i] again. */
static void number_nest(void *context, int64_t first, int64_t last)
{
    int inner = -1;

    simd_team_run(1, 1, 1, number_take, &inner);
    cr_assert_eq(inner, 0);
    number_take(context, first, last);
}

Test(op_team, members_have_numbers_of_their_own)
{
    crew_t *crew = NULL;
    err_t err = ERR_INIT;
    int numbers[3];

    cr_assert_eq(crew_open(3, "crew", &crew, &err), ERR_OK, "%s", err.text);
    for (int lent = 0; lent < 2; lent++) {
        simd_team_lend(lent ? crew : NULL);
        simd_team_run(3, 3, 1, number_nest, numbers);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(numbers[i], i);
    }
    simd_team_lend(NULL);
    crew_close(crew);
}
