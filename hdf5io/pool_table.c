/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/mem.h"
#include "hdf5io/pool_priv.h"

static size_t pool_bucket(uint64_t owner, uint64_t number, size_t buckets)
{
    const uint64_t x = (owner * UINT64_C(0x9e3779b97f4a7c15) ^ number) *
                       UINT64_C(0xd6e8feb86659fd93);

    return (size_t)(x >> 32) & (buckets - 1);
}

/* ---- the lists of unused extents ----------------------------------------- */

void hdf5io_pool_unused_remove(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool_list_t *list = extent->list;

    *(extent->older != NULL ? &extent->older->newer : &list->oldest) =
        extent->newer;
    *(extent->newer != NULL ? &extent->newer->older : &list->newest) =
        extent->older;
    extent->older = extent->newer = NULL;
    extent->list = NULL;
    if (list == &pool->unneeded)
        pool->idle -= extent->room;
}

/* Add an extent to [list]: as the first one whose memory is taken, or the last
 * one. */
static void list_add(pool_list_t *list, pool_extent_t *extent, bool first)
{
    extent->list = list;
    if (first) {
        extent->newer = list->oldest;
        *(list->oldest != NULL ? &list->oldest->older : &list->newest) = extent;
        list->oldest = extent;
    } else {
        extent->older = list->newest;
        *(list->newest != NULL ? &list->newest->newer : &list->oldest) = extent;
        list->newest = extent;
    }
}

void hdf5io_pool_unused_add(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    if (extent->kept) {
        list_add(&pool->kept, extent, false);
        return;
    }
    if (extent->until >= pool->batch) {
        list_add(&pool->needed[extent->until % POOL_AHEAD], extent, false);
        pool->last = pool->last > extent->until ? pool->last : extent->until;
        return;
    }
    list_add(&pool->unneeded, extent,
             extent->owner == POOL_NOBODY || extent->spent);
    pool->idle += extent->room;
}

pool_extent_t *hdf5io_pool_unused_first(hdf5io_pool_t *pool)
{
    if (pool->unneeded.oldest != NULL)
        return pool->unneeded.oldest;
    for (; pool->last >= pool->batch; pool->last--)
        if (pool->needed[pool->last % POOL_AHEAD].oldest != NULL)
            return pool->needed[pool->last % POOL_AHEAD].oldest;
    return pool->kept.oldest;
}

/* ---- the table ------------------------------------------------------------
 */

pool_extent_t *hdf5io_pool_find(const hdf5io_pool_t *pool, uint64_t owner,
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

void hdf5io_pool_table_add(hdf5io_pool_t *pool, pool_extent_t *extent)
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

void hdf5io_pool_table_remove(hdf5io_pool_t *pool, pool_extent_t *extent)
{
    pool_extent_t **at = &pool->buckets[pool_bucket(
        extent->owner, extent->number, pool->bucket_count)];

    while (*at != extent)
        at = &(*at)->chain;
    *at = extent->chain;
    extent->chain = NULL;
    pool->count--;
}
