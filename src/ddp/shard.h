/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: which rank keeps which part of the optimizer's state under ZeRO-1
 * (Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
 * parameter models", SC20, stage 1). Each bucket is divided evenly among the
 * ranks, so that every reduce-scatter and all-gather uses all of them. Ranges
 * begin at multiples of a unit, so all squares of a unit are summed by one
 * rank. Therefore the transfer of a bucket begins at the last multiple of a
 * unit before the bucket's first element, and ends where the next transfer
 * begins. (The gradients before the bucket's first element are complete, as
 * buckets start in order.)
 */
#ifndef CDDP_DDP_SHARD_H
#define CDDP_DDP_SHARD_H

#include "base/err.h"
#include "base/view.h"

typedef struct ddp_config ddp_config_t;
typedef struct ddp_layout ddp_layout_t;
typedef struct ddp_shards ddp_shards_t;

/* Divide the arena of [layout] among [size] ranks, in units of [unit] elements.
 * Local; all ranks get equal results. */
err_code_t ddp_shards_open(const ddp_config_t *config,
                           const ddp_layout_t *layout, int size, size_t unit,
                           ddp_shards_t **out, err_t *err);
void ddp_shards_close(ddp_shards_t *shards); /* NULL allowed */

int ddp_shards_buckets(const ddp_shards_t *shards);

/* The range of [rank] in [bucket]; may be empty. Ranges ascend by bucket, then
 * by rank, and cover the arena exactly once. */
view_range_t ddp_shards_range(const ddp_shards_t *shards, int bucket, int rank);

/* The range of elements that a bucket's collectives transfer, and its division
 * among ranks as comm takes it: [size + 1] indices, counted from its first
 * element. */
view_range_t ddp_shards_whole(const ddp_shards_t *shards, int bucket);
const size_t *ddp_shards_cuts(const ddp_shards_t *shards, int bucket);

#endif
