/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: which rank keeps which part of the optimizer's state under ZeRO-1
 * (Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
 * parameter models", SC20, stage 1). Each bucket is divided evenly among the
 * ranks, so that every reduce-scatter and all-gather uses all of them. Ranges
 * begin at multiples of a unit, so the sum of squares of a unit belongs to one
 * rank. Therefore the transfer of a bucket begins at the last multiple before
 * its first element (the gradients from there on are complete, as buckets start
 * in order) and ends where the next transfer begins.
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

/* The range of [rank] in [bucket]; may be empty. Ranges ascend by bucket, then
 * by rank, and cover the arena exactly once. */
view_range_t ddp_shards_range(const ddp_shards_t *shards, int bucket, int rank);

/* The whole transfer of a bucket, and its cuts: [size + 1] indices, counted
 * from its first element, as comm takes them. */
view_range_t ddp_shards_whole(const ddp_shards_t *shards, int bucket);
const size_t *ddp_shards_cuts(const ddp_shards_t *shards, int bucket);

#endif
