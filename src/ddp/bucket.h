/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How the gradient arena is cut into buckets. Internal to ddp; pure. */
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
 * Cut [layout] into [buckets] (room for view_count), in arena order, and return
 * how many. From the front one bucket of at most first_bucket_mb; from the back
 * one of at most last_bucket_mb, before it one of at most twice that, and so on
 * up to bucket_cap_mb, as what is under way when backward ends cannot hide;
 * between them runs of at most bucket_cap_mb. What is finished at the same time
 * (view_t.unit) stays together, so that no bucket waits for a layer of which it
 * has a small part; a unit that is larger than its limit is a bucket alone.
 */
int ddp_bucket_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                   ddp_bucket_t *buckets);

#endif
