/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For how long a counter has not grown, as several threads see it. The thread
 * sanitizer shows whether the threads disturb each other. */
#include "comm/comm_still.h"

#include <criterion/criterion.h>
#include <pthread.h>

#define THREADS 4
#define NUMBERS 2000

Test(comm_still, counts_from_the_last_growth)
{
    comm_still_t still;

    comm_still_open(&still, 100);
    cr_expect_eq(comm_still_for(&still, 0, 103), 3);
    cr_expect_eq(comm_still_for(&still, 1, 104), 0);
    cr_expect_eq(comm_still_for(&still, 1, 110), 6);
    cr_expect_eq(comm_still_for(&still, 7, 111), 0);
    /* A thread that has read an older number, or an older time, comes late. */
    cr_expect_eq(comm_still_for(&still, 1, 113), 2);
    cr_expect_eq(comm_still_for(&still, 7, 109), 0);
    cr_expect_eq(comm_still_for(&still, 7, 115), 4);
    comm_still_close(&still);
}

static void *look(void *context)
{
    comm_still_t *still = context;

    for (int i = 1; i <= NUMBERS; i++)
        (void)comm_still_for(still, (uint64_t)i, i);
    return NULL;
}

Test(comm_still, threads_look_at_the_same_time)
{
    pthread_t threads[THREADS];
    comm_still_t still;

    comm_still_open(&still, 0);
    for (int t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, look, &still), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    cr_expect_eq(comm_still_for(&still, NUMBERS, NUMBERS + 5), 5);
    comm_still_close(&still);
}
