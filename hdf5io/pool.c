/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A hash table of extents, and a list of those that nobody uses, in the order
 * in which their memory is taken. An extent of the same size gives its buffer
 * to the next one, so that reading chunks of one size allocates nothing once
 * the pool is full.
 */
#include "hdf5io/pool.h"

#include <pthread.h>

#include "base/check.h"
#include "base/mem.h"

#define POOL_BUCKETS_FIRST ((size_t)256)

struct pool_extent {
    uint64_t owner, number;
    unsigned char *bytes;
    size_t room; /* of [bytes] */
    size_t used; /* bytes that were used since it was filled */
    int users;
    bool ready;           /* filled */
    bool filling;         /* a thread fills it */
    pool_extent_t *chain; /* next in its bucket */
    /* Neighbours in the list of unused extents; NULL at the ends. */
    pool_extent_t *older, *newer;
};

struct hdf5io_pool {
    pthread_mutex_t lock;   /* protects all members */
    pthread_cond_t changed; /* an extent was filled, or that failed */
    size_t bound, held;
    int64_t counted; /* bytes, see hdf5io_pool_count */
    double seconds;
    uint64_t owners;         /* numbers that were given out */
    pool_extent_t **buckets; /* [bucket_count], a power of two */
    size_t bucket_count, count;
    pool_extent_t *oldest, *newest; /* ends of the list of unused extents */
};

static size_t pool_bucket(uint64_t owner, uint64_t number, size_t buckets)
{
    const uint64_t x = (owner * UINT64_C(0x9e3779b97f4a7c15) ^ number) *
                       UINT64_C(0xd6e8feb86659fd93);

    return (size_t)(x >> 32) & (buckets - 1);
}

/* ---- the list of unused extents ------------------------------------------ */

static void unused_remove(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    *(extent->older != NULL ? &extent->older->newer : &pool->oldest) =
        extent->newer;
    *(extent->newer != NULL ? &extent->newer->older : &pool->newest) =
        extent->older;
    extent->older = extent->newer = NULL;
}

/* Add an extent: as the first one whose memory is taken, or the last one. */
static void unused_add(hdf5io_pool_t *pool, pool_extent_t *extent, bool first)
{
    if (first) {
        extent->newer = pool->oldest;
        *(pool->oldest != NULL ? &pool->oldest->older : &pool->newest) = extent;
        pool->oldest = extent;
    } else {
        extent->older = pool->newest;
        *(pool->newest != NULL ? &pool->newest->newer : &pool->oldest) = extent;
        pool->newest = extent;
    }
}

/* ---- the table ------------------------------------------------------------
 */

static pool_extent_t *table_find(const hdf5io_pool_t *pool, uint64_t owner,
                                 uint64_t number)
{
    pool_extent_t *extent =
        pool->buckets[pool_bucket(owner, number, pool->bucket_count)];

    while (extent != NULL &&
           (extent->owner != owner || extent->number != number))
        extent = extent->chain;
    return extent;
}

/* Double the table. Without memory it stays as it is, and is slower. */
static void table_grow(hdf5io_pool_t *pool)
{
    const size_t count = 2 * pool->bucket_count;
    pool_extent_t **buckets;

    if (mem_new(pool_extent_t *, count, "a table of chunks", &buckets, NULL) !=
        ERR_OK)
        return;
    for (size_t b = 0; b < pool->bucket_count; b++)
        while (pool->buckets[b] != NULL) {
            pool_extent_t *extent = pool->buckets[b];
            pool_extent_t **to =
                &buckets[pool_bucket(extent->owner, extent->number, count)];

            pool->buckets[b] = extent->chain;
            extent->chain = *to;
            *to = extent;
        }
    mem_free(pool->buckets);
    pool->buckets = buckets;
    pool->bucket_count = count;
}

static void table_add(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool_extent_t **to;

    if (pool->count >= pool->bucket_count)
        table_grow(pool);
    to = &pool->buckets[pool_bucket(extent->owner, extent->number,
                                    pool->bucket_count)];
    extent->chain = *to;
    *to = extent;
    pool->count++;
}

static void table_remove(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool_extent_t **at = &pool->buckets[pool_bucket(
        extent->owner, extent->number, pool->bucket_count)];

    while (*at != extent)
        at = &(*at)->chain;
    *at = extent->chain;
    extent->chain = NULL;
    pool->count--;
}

/* ---- extents --------------------------------------------------------------
 */

/* Free an extent that nobody uses and that is in no list. */
static void extent_free(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool->held -= extent->room;
    mem_free(extent->bytes);
    mem_free(extent);
}

/* Take an unused extent of exactly [room] bytes, if memory is short or if it is
 * of no more use; free others until there is room. NULL: allocate one. */
static pool_extent_t *extent_reuse(hdf5io_pool_t *pool, size_t room)
{
    for (;;) {
        pool_extent_t *extent = pool->oldest;
        const bool full = pool->held + room > pool->bound;

        if (extent == NULL ||
            (!full && (extent->owner != POOL_NOBODY || extent->room != room)))
            return NULL;
        unused_remove(pool, extent);
        table_remove(pool, extent);
        if (extent->room == room)
            return extent;
        extent_free(pool, extent);
    }
}

/* A new extent with one user, to be filled. Lock held. */
static err_code_t extent_make(hdf5io_pool_t *pool, uint64_t owner,
                              uint64_t number, size_t room, pool_extent_t **out,
                              err_t *err)
{
    pool_extent_t *extent = extent_reuse(pool, room);
    void *bytes = NULL;
    err_code_t rc = ERR_OK;

    if (extent == NULL) {
        rc = mem_alloc(room, "a chunk of samples", &bytes, err);
        if (rc == ERR_OK)
            rc = mem_new(pool_extent_t, 1, "a chunk", &extent, err);
        if (rc != ERR_OK) {
            mem_free(bytes);
            return rc;
        }
        extent->bytes = bytes;
        pool->held += room;
    }
    bytes = extent->bytes;
    *extent = (pool_extent_t){.owner = owner,
                              .number = number,
                              .bytes = bytes,
                              .room = room,
                              .users = 1,
                              .filling = true};
    table_add(pool, extent);
    *out = extent;
    return ERR_OK;
}

/* Wait until nobody fills [extent]. True: it is filled, and one more uses it;
 * false: the caller shall fill it. Lock held. */
static bool extent_share(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    if (extent->users++ == 0)
        unused_remove(pool, extent);
    while (extent->filling)
        pthread_cond_wait(&pool->changed, &pool->lock);
    extent->filling = !extent->ready;
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
        extent = table_find(pool, owner, number);
    if (extent != NULL) {
        check(extent->room >= bytes, "a chunk of %zu bytes in %zu", bytes,
              extent->room);
        *fill = !extent_share(pool, extent);
    } else {
        rc = extent_make(pool, owner, number, mem_round(bytes), &extent, err);
        *fill = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (rc == ERR_OK)
        *out = extent;
    return rc;
}

void hdf5io_pool_filled(hdf5io_pool_t *pool, pool_extent_t *extent, bool good)
{
    pthread_mutex_lock(&pool->lock);
    check(extent->filling && !extent->ready, "a chunk is filled twice");
    extent->filling = false;
    extent->ready = good;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void hdf5io_pool_give(hdf5io_pool_t *pool, pool_extent_t *extent, size_t used,
                      size_t all)
{
    pthread_mutex_lock(&pool->lock);
    check(extent->users > 0, "a chunk has %d users", extent->users);
    extent->used += used;
    extent->users--;
    if (extent->users == 0 && extent->owner != POOL_NOBODY && !extent->ready) {
        table_remove(pool, extent);
        extent_free(pool, extent);
    } else if (extent->users == 0) {
        unused_add(pool, extent,
                   extent->owner == POOL_NOBODY || extent->used >= all);
    }
    /* What was beyond the bound while it was in use. */
    while (pool->held > pool->bound && pool->oldest != NULL) {
        pool_extent_t *oldest = pool->oldest;

        unused_remove(pool, oldest);
        table_remove(pool, oldest);
        extent_free(pool, oldest);
    }
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
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    *out = pool;
    return ERR_OK;
}

void hdf5io_pool_close(hdf5io_pool_t *pool)
{
    if (pool == NULL)
        return;
    while (pool->oldest != NULL) {
        pool_extent_t *oldest = pool->oldest;

        unused_remove(pool, oldest);
        table_remove(pool, oldest);
        extent_free(pool, oldest);
    }
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

void hdf5io_pool_forget(hdf5io_pool_t *pool, uint64_t owner)
{
    pool_extent_t *extent, *next;

    pthread_mutex_lock(&pool->lock);
    for (extent = pool->oldest; extent != NULL; extent = next) {
        next = extent->newer;
        if (extent->owner != owner)
            continue;
        unused_remove(pool, extent);
        table_remove(pool, extent);
        extent_free(pool, extent);
    }
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
