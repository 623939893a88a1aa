/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: who keeps which part of the optimizer's state under ZeRO-1
 * (Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
 * parameter models", SC20, stage 1). Each bucket is cut evenly among the ranks,
 * so that every reduce-scatter and every all-gather keeps all of them busy. All
 * cuts lie at multiples of a unit in the arena, whose sums of squares have one
 * owner therefore: a bucket's transfer begins at the last multiple before its
 * first element (what lies there is complete, as buckets start in order) and
 * ends where the next one begins.
 */
#ifndef CDDP_DDP_SHARD_H
#define CDDP_DDP_SHARD_H

#include "base/err.h"
#include "base/view.h"

typedef struct ddp_config ddp_config_t;
typedef struct ddp_layout ddp_layout_t;
typedef struct ddp_shards ddp_shards_t;

/* Cut the arena of [layout] for [size] ranks, in units of [unit] elements.
 * Local; the same on all ranks. */
err_code_t ddp_shards_open(const ddp_config_t *config,
                           const ddp_layout_t *layout, int size, size_t unit,
                           ddp_shards_t **out, err_t *err);
void ddp_shards_close(ddp_shards_t *shards); /* NULL allowed */

int ddp_shards_buckets(const ddp_shards_t *shards);

/* What [rank] owns of [bucket]; may be empty. They ascend, first by bucket,
 * then by rank, and cover the arena once. */
view_range_t ddp_shards_range(const ddp_shards_t *shards, int bucket, int rank);

/* All of a bucket's transfer, and where it is cut: [size + 1] elements from its
 * first on, as comm takes them. */
view_range_t ddp_shards_whole(const ddp_shards_t *shards, int bucket);
const size_t *ddp_shards_cuts(const ddp_shards_t *shards, int bucket);

#endif
