/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* bucket: how the gradient arena is cut into buckets. Pure. */
#ifndef CDDP_DDP_BUCKET_H
#define CDDP_DDP_BUCKET_H

#include "ddp/ddp.h"

/* A contiguous run of views. Gaps between views belong to the bucket before
 * them, as they are zero and cost less than another message. */
typedef struct ddp_bucket {
    int first_view, view_count;
    size_t offset, count; /* elements of the arena */
} ddp_bucket_t;

/*
 * Cut [layout] into [buckets], of view_count elements, in arena order; returns
 * the number of buckets. The first bucket has at most first_bucket_mb. The last
 * one has at most last_bucket_mb, the one before it at most twice that, and so
 * on up to bucket_cap_mb, as reductions that are in flight when backward ends
 * are not overlapped. Those between have at most bucket_cap_mb. Views that are
 * final at the same time (view_t.unit) stay together, so that no bucket waits
 * for a layer of which it has a small part. A unit that is larger than the
 * limit is a bucket of its own.
 */
int ddp_bucket_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                   ddp_bucket_t *buckets);

#endif
