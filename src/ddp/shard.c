/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/shard.h"

#include "base/check.h"
#include "base/mem.h"
#include "ddp/bucket.h"

struct ddp_shards {
    int size, buckets;
    size_t *first; /* [buckets + 1]: first element of each bucket's transfer */
    /* [buckets][size + 1]: range limits, counted from that element. */
    size_t *cuts;
};

static size_t *cuts_of(const ddp_shards_t *shards, int bucket)
{
    return shards->cuts + (size_t)bucket * ((size_t)shards->size + 1);
}

/* Divide a bucket's transfer evenly among the ranks, in whole units. The last
 * unit of the arena may be short. */
static void bucket_cut(ddp_shards_t *shards, int bucket, size_t unit)
{
    const size_t size = (size_t)shards->size;
    const size_t elems = shards->first[bucket + 1] - shards->first[bucket];
    const size_t units = (elems + unit - 1) / unit;
    size_t *cuts = cuts_of(shards, bucket);

    for (size_t r = 0; r <= size; r++) {
        /* floor(units * r / size), without overflow of units * r */
        size_t at = (units / size * r + units % size * r / size) * unit;

        cuts[r] = at < elems ? at : elems;
    }
}

/* Check that the ranges of all ranks ascend, begin at whole units and cover the
 * arena exactly once. */
static void shards_check(const ddp_shards_t *shards, size_t elems, size_t unit)
{
    size_t end = 0;

    for (int b = 0; CHECK_ON && b < shards->buckets; b++)
        for (int r = 0; r < shards->size; r++) {
            const view_range_t range = ddp_shards_range(shards, b, r);

            check(range.first == end,
                  "bucket %d of rank %d begins at %zu, expected %zu", b, r,
                  range.first, end);
            check(range.count == 0 || range.first % unit == 0,
                  "bucket %d of rank %d begins at %zu, units have %zu", b, r,
                  range.first, unit);
            end = range.first + range.count;
        }
    check(shards->buckets == 0 || end == elems, "ranges end at %zu of %zu", end,
          elems);
}

static err_code_t tables_alloc(ddp_shards_t *shards, err_t *err)
{
    size_t buckets = (size_t)shards->buckets;
    err_code_t rc;

    rc = mem_new(size_t, buckets + 1, "shards", &shards->first, err);
    if (rc == ERR_OK)
        rc = mem_new(size_t, buckets * ((size_t)shards->size + 1) + 1, "shards",
                     &shards->cuts, err);
    return rc;
}

err_code_t ddp_shards_open(const ddp_config_t *config,
                           const ddp_layout_t *layout, int size, size_t unit,
                           ddp_shards_t **out, err_t *err)
{
    ddp_bucket_t *buckets = NULL;
    ddp_shards_t *shards = NULL;
    err_code_t rc;

    rc = mem_new(ddp_bucket_t, (size_t)layout->view_count + 1, "shards",
                 &buckets, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(ddp_shards_t, 1, "shards", &shards, err);
    if (rc != ERR_OK)
        goto free;
    shards->size = size;
    shards->buckets = ddp_bucket_cut(config, layout, buckets);
    rc = tables_alloc(shards, err);
    if (rc != ERR_OK)
        goto free;
    for (int b = 1; b < shards->buckets; b++)
        shards->first[b] = buckets[b].offset / unit * unit;
    shards->first[shards->buckets] = layout->grad_elems;
    shards->first[0] = 0;
    for (int b = 0; b < shards->buckets; b++)
        bucket_cut(shards, b, unit);
    shards_check(shards, layout->grad_elems, unit);
    *out = shards;
    shards = NULL;
free:
    ddp_shards_close(shards);
    mem_free(buckets);
    return rc;
}

void ddp_shards_close(ddp_shards_t *shards)
{
    if (shards == NULL)
        return;
    mem_free(shards->cuts);
    mem_free(shards->first);
    mem_free(shards);
}

int ddp_shards_buckets(const ddp_shards_t *shards)
{
    return shards->buckets;
}

view_range_t ddp_shards_range(const ddp_shards_t *shards, int bucket, int rank)
{
    const size_t *cuts = cuts_of(shards, bucket);

    return (view_range_t){.first = shards->first[bucket] + cuts[rank],
                          .count = cuts[rank + 1] - cuts[rank]};
}

view_range_t ddp_shards_whole(const ddp_shards_t *shards, int bucket)
{
    const size_t first = shards->first[bucket];

    return (view_range_t){.first = first,
                          .count = shards->first[bucket + 1] - first};
}

const size_t *ddp_shards_cuts(const ddp_shards_t *shards, int bucket)
{
    return cuts_of(shards, bucket);
}
