/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A hash table has all extents. Lists have the extents that nobody uses: an
 * extent that batches of the plan need is in the list of the last of these
 * batches, and an extent that no batch is known to need is in the list
 * `unneeded`, in the order in which memory is taken. An extent that is to be
 * kept is in the list `kept`. When a batch is done, the extents of its list are
 * moved to `unneeded`. A new extent takes the buffer of an extent of the same
 * size, so that reading chunks of one size allocates nothing once the pool is
 * full.
 */
#include "hdf5io/pool.h"

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/pool_priv.h"

#define POOL_BUCKETS_FIRST ((size_t)256)

/* ---- extents --------------------------------------------------------------
 */

/* Free an extent that nobody uses and that is in no list. */
static void extent_free(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool->held -= extent->room;
    mem_free(extent->bytes);
    mem_free(extent);
}

/* Free an unused extent. */
static void unused_free(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    hdf5io_pool_unused_remove(pool, extent);
    hdf5io_pool_table_remove(pool, extent);
    extent_free(pool, extent);
}

/* Take an unused extent of exactly [room] bytes, if memory is short or if it is
 * of no more use; free others until there is room. A buffer without owner is
 * given back soon, so it takes no extent that a batch needs. NULL: allocate
 * one. */
static pool_extent_t *extent_reuse(hdf5io_pool_t *pool, uint64_t owner,
                                   size_t room)
{
    for (;;) {
        pool_extent_t *extent = owner == POOL_NOBODY
                                    ? pool->unneeded.oldest
                                    : hdf5io_pool_unused_first(pool);
        const bool full = pool->held + room > pool->bound;

        if (extent == NULL ||
            (!full && (extent->owner != POOL_NOBODY || extent->room != room)))
            return NULL;
        hdf5io_pool_unused_remove(pool, extent);
        hdf5io_pool_table_remove(pool, extent);
        if (extent->room == room)
            return extent;
        extent_free(pool, extent);
    }
}

/* Make an extent with one user, who shall fill it. If it has no memory yet,
 * extent_allocate gives it some after the lock is released, since that takes
 * long. Lock held. */
static err_code_t extent_make(hdf5io_pool_t *pool, uint64_t owner,
                              uint64_t number, size_t room, pool_extent_t **out,
                              err_t *err)
{
    pool_extent_t *extent = extent_reuse(pool, owner, room);
    unsigned char *bytes;
    err_code_t rc = ERR_OK;

    if (extent == NULL) {
        rc = mem_new(pool_extent_t, 1, "a chunk", &extent, err);
        if (rc != ERR_OK)
            return rc;
        pool->held += room;
    }
    bytes = extent->bytes;
    *extent = (pool_extent_t){.owner = owner,
                              .number = number,
                              .bytes = bytes,
                              .room = room,
                              .users = 1,
                              .filling = true};
    *(owner == POOL_NOBODY ? &pool->lent : &pool->filling) += room;
    hdf5io_pool_table_add(pool, extent);
    *out = extent;
    return ERR_OK;
}

/* Give memory to an extent that the calling thread fills. If that fails, the
 * extent is given back. The lock is not held. */
static err_code_t extent_allocate(hdf5io_pool_t *pool, pool_extent_t *extent,
                                  err_t *err)
{
    void *bytes = NULL;
    err_code_t rc;

    if (extent->bytes != NULL)
        return ERR_OK;
    rc = mem_alloc_any(extent->room, "a chunk of samples", &bytes, err);
    extent->bytes = bytes;
    if (rc != ERR_OK) {
        hdf5io_pool_filled(pool, extent, false);
        hdf5io_pool_give(pool, extent, 0, 0);
    }
    return rc;
}

/* Wait until nobody fills [extent]. True: it is filled, and one more uses it;
 * false: the caller shall fill it. Lock held. */
static bool extent_share(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    if (extent->users++ == 0)
        hdf5io_pool_unused_remove(pool, extent);
    extent->spent = false;
    while (extent->filling)
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (!extent->ready) {
        extent->filling = true;
        pool->filling += extent->room;
    }
    return extent->ready;
}

err_code_t hdf5io_pool_take(hdf5io_pool_t *pool, uint64_t owner,
                            uint64_t number, size_t bytes, pool_extent_t **out,
                            bool *fill, err_t *err)
{
    pool_extent_t *extent = NULL;
    err_code_t rc = ERR_OK;

    pthread_mutex_lock(&pool->lock);
    if (owner != POOL_NOBODY)
        extent = hdf5io_pool_find(pool, owner, number);
    if (extent != NULL) {
        check(extent->room >= bytes, "a chunk of %zu bytes in %zu", bytes,
              extent->room);
        *fill = !extent_share(pool, extent);
    } else {
        rc = extent_make(pool, owner, number, mem_round(bytes), &extent, err);
        *fill = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (rc == ERR_OK && *fill)
        rc = extent_allocate(pool, extent, err);
    if (rc == ERR_OK)
        *out = extent;
    return rc;
}

/* ---- the plan -------------------------------------------------------------
 */

/* The batches before [batch] are done: extents that only these batches needed
 * are not needed any more. Lock held. */
static void plan_done(hdf5io_pool_t *pool, uint64_t batch)
{
    while (pool->batch < batch && pool->batch <= pool->last) {
        const pool_list_t *list = &pool->needed[pool->batch++ % POOL_AHEAD];
        const pool_extent_t *last = list->newest;
        pool_extent_t *extent = NULL;

        /* Move each extent once, even if it is added to the same list. */
        while (extent != last) {
            extent = list->oldest;
            hdf5io_pool_unused_remove(pool, extent);
            hdf5io_pool_unused_add(pool, extent);
        }
    }
    if (pool->batch < batch)
        pool->batch = batch;
}

void hdf5io_pool_plan(hdf5io_pool_t *pool)
{
    pthread_mutex_lock(&pool->lock);
    plan_done(pool, UINT64_MAX);
    for (size_t b = 0; b < pool->bucket_count; b++)
        for (pool_extent_t *extent = pool->buckets[b]; extent != NULL;
             extent = extent->chain)
            extent->until = 0;
    pool->batch = 1;
    pool->last = 0;
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_plan_done(hdf5io_pool_t *pool, uint64_t batch)
{
    pthread_mutex_lock(&pool->lock);
    plan_done(pool, batch);
    pthread_mutex_unlock(&pool->lock);
}

/* [batch] needs the extent. */
static void extent_need(hdf5io_pool_t *pool, pool_extent_t *extent,
                        uint64_t batch)
{
    const bool unused = extent->list != NULL;

    if (extent->until >= batch)
        return;
    if (unused)
        hdf5io_pool_unused_remove(pool, extent);
    extent->until = batch;
    if (unused)
        hdf5io_pool_unused_add(pool, extent);
}

/* Is there room for an extent of [room] bytes and for a buffer of its stored
 * bytes, if only extents that no batch needs are given up? An extent that
 * another thread fills counts twice: that thread needs a buffer of the same
 * size for the stored bytes, and may not have it yet. Lock held. */
static bool plan_room(const hdf5io_pool_t *pool, size_t room)
{
    const size_t used = pool->held - pool->idle - pool->lent + pool->filling;

    return used <= pool->bound && 2 * room <= pool->bound - used;
}

pool_want_t hdf5io_pool_want(hdf5io_pool_t *pool, uint64_t owner,
                             uint64_t number, size_t bytes, uint64_t batch,
                             pool_extent_t **out)
{
    const size_t room = mem_round(bytes);
    pool_want_t want = POOL_HERE;
    pool_extent_t *extent;

    pthread_mutex_lock(&pool->lock);
    extent = hdf5io_pool_find(pool, owner, number);
    if (batch >= pool->batch && batch - pool->batch >= POOL_AHEAD)
        want = POOL_FULL;
    else if (batch >= pool->batch && extent == NULL)
        want = plan_room(pool, room) && extent_make(pool, owner, number, room,
                                                    &extent, NULL) == ERR_OK
                   ? POOL_FILL
                   : POOL_FULL;
    if (want != POOL_FULL && batch >= pool->batch)
        extent_need(pool, extent, batch);
    pthread_mutex_unlock(&pool->lock);
    if (want != POOL_FILL)
        return want;
    if (extent_allocate(pool, extent, NULL) != ERR_OK)
        return POOL_FULL;
    *out = extent;
    return want;
}

bool hdf5io_pool_has(hdf5io_pool_t *pool, uint64_t owner, uint64_t number)
{
    bool has;

    pthread_mutex_lock(&pool->lock);
    has = hdf5io_pool_find(pool, owner, number) != NULL;
    pthread_mutex_unlock(&pool->lock);
    return has;
}

void hdf5io_pool_filled(hdf5io_pool_t *pool, pool_extent_t *extent, bool good)
{
    pthread_mutex_lock(&pool->lock);
    check(extent->filling && !extent->ready, "a chunk is filled twice");
    extent->filling = false;
    if (extent->owner != POOL_NOBODY)
        pool->filling -= extent->room;
    extent->ready = good;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* Free extents until the pool is within its bound. Buffers without owner are
 * given back soon, so only extents that no batch needs are freed for them. Lock
 * held. */
static void pool_trim(hdf5io_pool_t *pool)
{
    pool_extent_t *extent;

    while (pool->held > pool->bound && pool->unneeded.oldest != NULL)
        unused_free(pool, pool->unneeded.oldest);
    while (pool->held - pool->lent > pool->bound &&
           (extent = hdf5io_pool_unused_first(pool)) != NULL)
        unused_free(pool, extent);
}

void hdf5io_pool_give(hdf5io_pool_t *pool, pool_extent_t *extent, size_t used,
                      size_t all)
{
    pthread_mutex_lock(&pool->lock);
    check(extent->users > 0, "a chunk has %d users", extent->users);
    extent->used += used;
    if (extent->used >= all) {
        extent->spent = true;
        extent->used = 0; /* it may be there in the next epoch, too */
    }
    extent->users--;
    if (extent->owner == POOL_NOBODY)
        pool->lent -= extent->room;
    if (extent->users == 0 && !extent->ready &&
        (extent->owner != POOL_NOBODY || extent->bytes == NULL)) {
        hdf5io_pool_table_remove(pool, extent);
        extent_free(pool, extent);
    } else if (extent->users == 0) {
        hdf5io_pool_unused_add(pool, extent);
    }
    pool_trim(pool);
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_keep(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pthread_mutex_lock(&pool->lock);
    check(extent->users > 0, "a chunk that nobody uses is to be kept");
    extent->kept = true;
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_exchange(pool_extent_t *a, pool_extent_t *b)
{
    unsigned char *bytes = a->bytes;

    check(a->filling && b->filling && a->room == b->room,
          "chunks of %zu and %zu bytes are exchanged", a->room, b->room);
    a->bytes = b->bytes;
    b->bytes = bytes;
}

unsigned char *hdf5io_pool_bytes(pool_extent_t *extent)
{
    return extent->bytes;
}

/* ---- the pool -------------------------------------------------------------
 */

err_code_t hdf5io_pool_open(size_t bytes, hdf5io_pool_t **out, err_t *err)
{
    hdf5io_pool_t *pool = NULL;
    err_code_t rc = mem_new(hdf5io_pool_t, 1, "a pool of chunks", &pool, err);

    if (rc != ERR_OK)
        return rc;
    pool->bucket_count = POOL_BUCKETS_FIRST;
    rc = mem_new(pool_extent_t *, pool->bucket_count, "a table of chunks",
                 &pool->buckets, err);
    if (rc != ERR_OK) {
        mem_free(pool);
        return rc;
    }
    pool->bound = bytes;
    pool->batch = 1;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    *out = pool;
    return ERR_OK;
}

void hdf5io_pool_close(hdf5io_pool_t *pool)
{
    pool_extent_t *extent;

    if (pool == NULL)
        return;
    while ((extent = hdf5io_pool_unused_first(pool)) != NULL)
        unused_free(pool, extent);
    check(pool->count == 0 && pool->held == 0, "%zu chunks are in use",
          pool->count);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->buckets);
    mem_free(pool);
}

void hdf5io_pool_allow(hdf5io_pool_t *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->bound < bytes)
        pool->bound = bytes;
    pthread_mutex_unlock(&pool->lock);
}

uint64_t hdf5io_pool_owners(hdf5io_pool_t *pool, uint64_t count)
{
    uint64_t first;

    pthread_mutex_lock(&pool->lock);
    first = pool->owners + 1;
    pool->owners += count;
    pthread_mutex_unlock(&pool->lock);
    return first;
}

uint64_t hdf5io_pool_owner(hdf5io_pool_t *pool)
{
    return hdf5io_pool_owners(pool, 1);
}

static void list_forget(hdf5io_pool_t *pool, const pool_list_t *list,
                        uint64_t owner)
{
    pool_extent_t *extent, *next;

    for (extent = list->oldest; extent != NULL; extent = next) {
        next = extent->newer;
        if (extent->owner == owner)
            unused_free(pool, extent);
    }
}

void hdf5io_pool_forget(hdf5io_pool_t *pool, uint64_t owner)
{
    pthread_mutex_lock(&pool->lock);
    list_forget(pool, &pool->kept, owner);
    list_forget(pool, &pool->unneeded, owner);
    for (int i = 0; i < POOL_AHEAD; i++)
        list_forget(pool, &pool->needed[i], owner);
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_count(hdf5io_pool_t *pool, size_t bytes, double seconds)
{
    pthread_mutex_lock(&pool->lock);
    pool->counted += (int64_t)bytes;
    pool->seconds += seconds;
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_counts(hdf5io_pool_t *pool, int64_t *bytes, double *seconds)
{
    pthread_mutex_lock(&pool->lock);
    *bytes = pool->counted;
    *seconds = pool->seconds;
    pthread_mutex_unlock(&pool->lock);
}

size_t hdf5io_pool_held(hdf5io_pool_t *pool)
{
    size_t held;

    pthread_mutex_lock(&pool->lock);
    held = pool->held;
    pthread_mutex_unlock(&pool->lock);
    return held;
}

size_t hdf5io_pool_bound(hdf5io_pool_t *pool)
{
    size_t bound;

    pthread_mutex_lock(&pool->lock);
    bound = pool->bound;
    pthread_mutex_unlock(&pool->lock);
    return bound;
}
