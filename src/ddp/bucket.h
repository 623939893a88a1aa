/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* bucket: divides the gradient arena into buckets, and traces them. */
#ifndef CDDP_DDP_BUCKET_H
#define CDDP_DDP_BUCKET_H

#include "ddp/ddp.h"

/* A contiguous run of views. A gap between views belongs to the bucket before
 * it: its zeros cost less than another message. */
typedef struct ddp_bucket {
    int first_view, view_count;
    size_t offset, count; /* first element in the arena; number of elements */
} ddp_bucket_t;

/*
 * Divide [layout] into buckets in the order of the arena. [buckets] has
 * view_count elements; returns the number of buckets. The first bucket has at
 * most first_bucket_mb. The last one has at most last_bucket_mb, the one before
 * it at most twice as much, and so on up to bucket_cap_mb, because reductions
 * that are in flight when backward ends are not overlapped. All others have at
 * most bucket_cap_mb. Views that are final at the same time (view_t.unit) stay
 * in one bucket, so that no bucket waits for a layer of which it has only a
 * small part. A unit larger than the limit is a bucket of its own.
 */
int ddp_bucket_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                   ddp_bucket_t *buckets);

/* Add a collective of bucket [index] (from 0), which began at the clock instant
 * [begin] and ends now, to [trace], unless [trace] is NULL or off. [what]: the
 * kind of collective, a static text. */
void ddp_bucket_trace(trace_t *trace, int index, const char *what,
                      double begin);

#endif
