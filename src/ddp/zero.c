/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ZeRO-1 in the reducer: after the update the ranks all-gather the parameters
 * in place, bucket by bucket.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "ddp/ddp_priv.h"

/* List the ranges of arena elements that belong to no view. */
static void gaps_find(ddp_t *ddp, const ddp_layout_t *layout)
{
    size_t at = 0;

    for (int v = 0; v <= layout->view_count; v++) {
        const bool end = v == layout->view_count;
        size_t to = end ? layout->grad_elems : layout->views[v].offset;

        if (to > at)
            ddp->gaps[ddp->gap_count++] = (view_range_t){at, to - at};
        if (!end)
            at = to + layout->views[v].count;
    }
}

err_code_t ddp_zero_open(ddp_t *ddp, const ddp_layout_t *layout, err_t *err)
{
    err_code_t rc;

    rc = mem_new(view_range_t, (size_t)layout->view_count + 1, "shards",
                 &ddp->gaps, err);
    if (rc == ERR_OK)
        rc = mem_new(ddp_gather_t, (size_t)ddp->bucket_count + 1, "shards",
                     &ddp->shares, err);
    if (rc != ERR_OK)
        return rc;
    gaps_find(ddp, layout);
    ddp->shards = layout->shards;
    return ERR_OK;
}

void ddp_zero_close(ddp_t *ddp)
{
    mem_free(ddp->shares);
    mem_free(ddp->gaps);
}

err_code_t ddp_zero_gaps(ddp_t *ddp, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (!ddp->gaps_due)
        return ERR_OK;
    ddp->gaps_due = false;
    for (int i = 0; rc == ERR_OK && i < ddp->gap_count; i++)
        rc = ddp_place_zero(ddp, ddp->gaps[i].first, ddp->gaps[i].count, err);
    return rc;
}

err_code_t ddp_share(ddp_t *ddp, int bucket, float *params,
                     dev_stream_t *stream, err_t *err)
{
    const view_range_t whole = ddp_shards_whole(ddp->shards, bucket);
    ddp_gather_t *share = &ddp->shares[bucket];
    comm_state_t state;
    err_code_t rc;

    check(bucket >= 0 && bucket < ddp->bucket_count, "bucket %d of %d", bucket,
          ddp->bucket_count);
    check(!share->flying, "bucket %d is shared twice", bucket);
    rc = ddp_place_after(ddp, ddp->flights[bucket].after, stream, err);
    if (rc != ERR_OK)
        return rc;
    *share = (ddp_gather_t){.started = clock_now(), .flying = true};
    state = comm_allgather_ranges_start(ddp->group, params + whole.first,
                                        ddp_shards_cuts(ddp->shards, bucket),
                                        COMM_FLOAT32, &share->work, err);
    ddp->stats.bytes += (int64_t)(whole.count * sizeof *params);
    if (state == COMM_FAILED)
        return err != NULL ? err->code : ERR_PEER;
    return ERR_OK;
}

/* Wait for all collectives even after a failure, as each has a work handle to
 * be freed. */
static err_code_t shares_wait(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    double begin = clock_now();
    err_code_t rc = ERR_OK;

    for (int b = 0; b < ddp->bucket_count; b++) {
        ddp_gather_t *share = &ddp->shares[b];
        err_code_t one;

        one = ddp_place_wait(ddp, share->work, ddp->flights[b].after, on,
                             rc == ERR_OK ? err : NULL);
        if (share->flying)
            ddp_bucket_trace(ddp->trace, b, "all-gather", share->started);
        *share = (ddp_gather_t){0};
        if (rc == ERR_OK)
            rc = one;
    }
    ddp->stats.comm_s += clock_now() - begin;
    ddp->stats.exposed_s += clock_now() - begin;
    return rc;
}

err_code_t ddp_share_wait(ddp_t *ddp, err_t *err)
{
    return shares_wait(ddp, NULL, err);
}

err_code_t ddp_share_wait_on(ddp_t *ddp, dev_stream_t *stream, err_t *err)
{
    return shares_wait(ddp, ddp->dev == NULL ? NULL : stream, err);
}
