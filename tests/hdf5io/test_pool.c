/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which extents the pool gives up when memory is short. */
#include "hdf5io/pool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of each extent, and number of extents for which the pool has room. */
enum { BYTES = 1024, ROOM = 4 };

#define OWNER 7

static hdf5io_pool_t *pool;

/* Allocations of extents wait until [together] of them have begun; 0: none
 * waits. [allowed]: number of allocations that succeed. */
static atomic_int together, allocating;
static atomic_int allowed = INT_MAX;

/* Replaces the function of the C library. */
int posix_memalign(void **out, size_t align, size_t bytes)
{
    if (bytes == BYTES) {
        atomic_fetch_add(&allocating, 1);
        while (atomic_load(&allocating) < atomic_load(&together))
            sched_yield();
        if (atomic_fetch_sub(&allowed, 1) <= 0)
            return ENOMEM;
    }
    *out = aligned_alloc(align, (bytes + align - 1) / align * align);
    return *out == NULL ? ENOMEM : 0;
}

static void start(void)
{
    cr_assert_eq(hdf5io_pool_open((size_t)ROOM * BYTES, &pool, NULL), ERR_OK);
}

static void stop(void)
{
    hdf5io_pool_close(pool);
}

TestSuite(pool, .init = start, .fini = stop);

/* Take an extent; returns whether it was in the pool. */
static bool take(uint64_t number, pool_extent_t **out)
{
    bool fill;

    cr_assert_eq(hdf5io_pool_take(pool, OWNER, number, BYTES, out, &fill, NULL),
                 ERR_OK);
    if (fill) {
        memset(hdf5io_pool_bytes(*out), (int)number, BYTES);
        hdf5io_pool_filled(pool, *out, true);
    }
    cr_assert_eq(*hdf5io_pool_bytes(*out), number);
    return !fill;
}

/* Use a part of an extent; returns whether it was in the pool. */
static bool use(uint64_t number)
{
    pool_extent_t *extent;
    const bool there = take(number, &extent);

    hdf5io_pool_give(pool, extent, 1, BYTES);
    return there;
}

/* Use all of an extent. */
static void use_all(uint64_t number)
{
    pool_extent_t *extent;

    take(number, &extent);
    hdf5io_pool_give(pool, extent, BYTES, BYTES);
}

/* Say that [batch] needs the extent, and fill it if the pool asks for that. */
static pool_want_t want(uint64_t number, uint64_t batch)
{
    pool_extent_t *extent;
    const pool_want_t result =
        hdf5io_pool_want(pool, OWNER, number, BYTES, batch, &extent);

    if (result == POOL_FILL) {
        memset(hdf5io_pool_bytes(extent), (int)number, BYTES);
        hdf5io_pool_filled(pool, extent, true);
        hdf5io_pool_give(pool, extent, 0, SIZE_MAX);
    }
    return result;
}

Test(pool, gives_up_what_was_used_least_recently_if_nothing_is_planned)
{
    for (uint64_t i = 1; i <= ROOM; i++)
        cr_expect_not(use(i));
    cr_expect(use(1));
    cr_expect_not(use(5)); /* in place of 2 */
    cr_expect_not(use(6)); /* in place of 3 */
    cr_expect(use(4));
    cr_expect(use(1));
    cr_expect_not(use(2));
}

Test(pool, gives_up_first_what_was_read_completely)
{
    for (uint64_t i = 1; i <= ROOM; i++)
        use(i);
    use_all(3);
    cr_expect_not(use(5));
    cr_expect(use(1));
    cr_expect(use(2));
    cr_expect(use(4));
    cr_expect_not(use(3));
}

/* An extent that was read completely may stay until the next epoch. Then it
 * does not count as read completely from the start. */
Test(pool, counts_what_was_read_of_an_extent_anew_when_it_was_read_completely)
{
    for (uint64_t i = 1; i <= ROOM; i++)
        use_all(i);
    for (uint64_t i = 1; i <= ROOM; i++)
        cr_expect(use(i));
    use_all(4);
    cr_expect_not(use(5)); /* in place of 4, not of 1 */
    cr_expect(use(1));
}

Test(pool, gives_up_last_what_is_needed_first)
{
    pool_extent_t *held[3];

    for (uint64_t i = 1; i <= ROOM; i++)
        use(i);
    cr_assert_eq(want(1, 3), POOL_HERE);
    cr_assert_eq(want(2, 1), POOL_HERE);
    cr_assert_eq(want(3, 2), POOL_HERE);
    use_all(2);                       /* batch 1 needs it nevertheless */
    cr_expect_not(take(5, &held[0])); /* in place of 4, which nothing needs */
    cr_expect_not(take(6, &held[1])); /* in place of 1, which batch 3 needs */
    cr_expect_not(take(7, &held[2])); /* in place of 3, which batch 2 needs */
    cr_expect_eq(hdf5io_pool_held(pool), (size_t)ROOM * BYTES);
    cr_expect(use(2));
    for (int i = 0; i < 3; i++)
        hdf5io_pool_give(pool, held[i], 1, BYTES);
    /* If two batches need an extent, the later one counts. */
    cr_assert_eq(want(5, 2), POOL_HERE);
    cr_assert_eq(want(2, 4), POOL_HERE);
    cr_assert_eq(want(2, 1), POOL_HERE);
    cr_assert_eq(want(6, 3), POOL_HERE);
    cr_assert_eq(want(7, 3), POOL_HERE);
    cr_expect_not(use(8)); /* in place of 2 */
    cr_expect(use(5));
    cr_expect(use(6));
    cr_expect(use(7));
}

Test(pool, what_a_batch_needed_is_of_no_use_when_the_batch_is_done)
{
    for (uint64_t i = 1; i <= ROOM; i++)
        use(i);
    cr_assert_eq(want(2, 1), POOL_HERE);
    cr_assert_eq(want(3, 1), POOL_HERE);
    cr_assert_eq(want(1, 2), POOL_HERE);
    cr_assert_eq(want(4, 3), POOL_HERE);
    hdf5io_pool_plan_done(pool, 2);
    cr_expect_not(use(5)); /* in place of 2 */
    cr_expect(use(3));
    cr_expect(use(1));
    cr_expect(use(4));
    /* A batch that is done needs nothing. */
    cr_expect_eq(want(6, 1), POOL_HERE);
    cr_expect_not(use(6));
}

Test(pool, reads_nothing_ahead_at_the_cost_of_an_earlier_batch)
{
    cr_expect_eq(want(1, 1), POOL_FILL);
    cr_expect_eq(want(2, 2), POOL_FILL);
    cr_expect_eq(want(3, 2), POOL_FILL);
    /* The rest of the memory is for stored bytes. */
    cr_expect_eq(want(4, 3), POOL_FULL);
    cr_expect_eq(want(2, 3), POOL_HERE);
    hdf5io_pool_plan_done(pool, 2); /* 1 is not needed any more */
    cr_expect_eq(want(4, 3), POOL_FILL);
    cr_expect_eq(want(5, 3), POOL_FULL);
    cr_expect(use(2));
    cr_expect(use(3));
    cr_expect(use(4));
    cr_expect_leq(hdf5io_pool_held(pool), (size_t)ROOM * BYTES);
}

/* Several threads read ahead; each needs a buffer for stored bytes. */
Test(pool, has_room_for_the_stored_bytes_of_all_that_is_being_filled)
{
    pool_extent_t *extent[2], *buffer[2];
    bool fill;

    for (uint64_t i = 0; i < 2; i++)
        cr_assert_eq(hdf5io_pool_want(pool, OWNER, 1 + i, BYTES, 1, &extent[i]),
                     POOL_FILL);
    cr_expect_eq(want(3, 1), POOL_FULL);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(hdf5io_pool_take(pool, POOL_NOBODY, 0, BYTES, &buffer[i],
                                      &fill, NULL),
                     ERR_OK);
    cr_expect_eq(hdf5io_pool_held(pool), (size_t)ROOM * BYTES);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(want(3, 1), POOL_FULL);
        hdf5io_pool_filled(pool, extent[i], true);
        hdf5io_pool_give(pool, extent[i], 0, SIZE_MAX);
        hdf5io_pool_give(pool, buffer[i], 0, 0);
    }
    cr_expect_eq(want(3, 1), POOL_FILL);
    cr_expect_eq(hdf5io_pool_held(pool), (size_t)ROOM * BYTES);
}

Test(pool, is_planned_for_a_limited_number_of_batches)
{
    cr_expect_eq(want(1, POOL_AHEAD), POOL_FILL);
    cr_expect_eq(want(2, POOL_AHEAD + 1), POOL_FULL);
    cr_expect_eq(want(1, POOL_AHEAD + 1), POOL_FULL);
    hdf5io_pool_plan_done(pool, 2);
    cr_expect_eq(want(2, POOL_AHEAD + 1), POOL_FILL);
    hdf5io_pool_plan_done(pool, 1000000);
    cr_expect_eq(want(3, 1000000 + POOL_AHEAD - 1), POOL_FILL);
    cr_expect_eq(want(4, 1000000), POOL_FILL);
    hdf5io_pool_plan(pool);
    cr_expect_eq(want(5, 1), POOL_FILL);
    cr_expect_eq(want(6, POOL_AHEAD + 1), POOL_FULL);
}

/* Shards are opened while a run reads its samples, and each may need a larger
 * bound. */
Test(pool, keeps_its_plan_when_its_bound_grows, .timeout = 300)
{
    pool_extent_t *extent;

    hdf5io_pool_plan_done(pool, 1020);
    cr_assert_eq(want(1, 1030), POOL_FILL);
    cr_assert_eq(want(2, 1021), POOL_FILL);
    hdf5io_pool_allow(pool, 1);
    hdf5io_pool_plan_done(pool, 1021);
    /* The first batch is not too far ahead; the second one is done, and needs
     * nothing. */
    cr_expect_eq(want(3, 1020 + POOL_AHEAD), POOL_FILL);
    cr_expect_eq(want(4, 1020), POOL_HERE);
    hdf5io_pool_allow(pool, (size_t)2 * ROOM * BYTES);
    hdf5io_pool_plan_done(pool, 1031);
    cr_expect_eq(hdf5io_pool_bound(pool), (size_t)2 * ROOM * BYTES);
    cr_expect(take(1, &extent));
    hdf5io_pool_give(pool, extent, 1, BYTES);
}

/* Buffers without owner are for stored bytes, and are given back soon. */
Test(pool, a_buffer_without_owner_takes_nothing_that_is_needed)
{
    pool_extent_t *buffer[2];
    bool fill;

    for (uint64_t i = 1; i <= ROOM; i++) {
        use(i);
        cr_assert_eq(want(i, i), POOL_HERE);
    }
    for (int i = 0; i < 2; i++)
        cr_assert_eq(hdf5io_pool_take(pool, POOL_NOBODY, 0, BYTES, &buffer[i],
                                      &fill, NULL),
                     ERR_OK);
    cr_expect_eq(hdf5io_pool_held(pool), (size_t)(ROOM + 2) * BYTES);
    for (int i = 0; i < 2; i++)
        hdf5io_pool_give(pool, buffer[i], 0, 0);
    cr_expect_eq(hdf5io_pool_held(pool), (size_t)ROOM * BYTES);
    for (uint64_t i = 1; i <= ROOM; i++)
        cr_expect(use(i));
}

Test(pool, gives_up_at_the_very_end_what_is_to_be_kept)
{
    pool_extent_t *extent, *held[3];

    take(1, &extent);
    hdf5io_pool_keep(pool, extent);
    hdf5io_pool_give(pool, extent, BYTES, BYTES);
    for (uint64_t i = 2; i <= ROOM; i++) {
        use(i);
        cr_assert_eq(want(i, i), POOL_HERE);
    }
    for (uint64_t i = 0; i < 3; i++)
        cr_expect_not(take(5 + i, &held[i]));
    cr_expect(use(1));
    cr_expect_not(use(8)); /* in place of 1 */
    for (int i = 0; i < 3; i++)
        hdf5io_pool_give(pool, held[i], 1, BYTES);
}

Test(pool, forgets_the_extents_of_an_owner_needed_or_not)
{
    use(1);
    use(2);
    cr_assert_eq(want(2, 1), POOL_HERE);
    hdf5io_pool_forget(pool, OWNER + 1);
    cr_expect_eq(hdf5io_pool_held(pool), 2 * BYTES);
    hdf5io_pool_forget(pool, OWNER);
    cr_expect_eq(hdf5io_pool_held(pool), 0);
    cr_expect_not(use(2));
}

static void *use_one(void *number)
{
    pool_extent_t *extent;

    take(*(const uint64_t *)number, &extent);
    hdf5io_pool_give(pool, extent, 1, BYTES);
    return NULL;
}

/* If memory were allocated under the lock of the pool, the first thread would
 * wait for ever. */
Test(pool, threads_get_memory_at_the_same_time, .timeout = 300)
{
    uint64_t numbers[] = {1, 2};
    pthread_t threads[2];

    atomic_store(&together, 2);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, use_one, &numbers[i]),
                     0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_expect(use(1));
    cr_expect(use(2));
}

Test(pool, an_extent_without_memory_leaves_nothing_behind)
{
    pool_extent_t *extent;
    bool fill;

    atomic_store(&allowed, 0);
    cr_expect_eq(hdf5io_pool_take(pool, OWNER, 1, BYTES, &extent, &fill, NULL),
                 ERR_MEMORY);
    cr_expect_eq(
        hdf5io_pool_take(pool, POOL_NOBODY, 0, BYTES, &extent, &fill, NULL),
        ERR_MEMORY);
    cr_expect_eq(want(1, 1), POOL_FULL);
    cr_expect_eq(hdf5io_pool_held(pool), 0);
    atomic_store(&allowed, 1);
    cr_expect_not(use(1));
    cr_expect(use(1));
}
