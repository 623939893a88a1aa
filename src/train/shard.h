/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: ZeRO-1 in a run (ddp.zero: 1). Each rank keeps the optimizer's state,
 * the moving average included, of its own ranges of the arena. It updates these
 * ranges and sends the new parameters to all ranks. The square sums behind the
 * norms of gradients and tensors are gathered block by block and added in one
 * order: so if the gradients' sums have the same bits as without shards, the
 * update has them, too (docs/COMM.md). Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_SHARD_H
#define CDDP_TRAIN_SHARD_H

#include "comm/comm.h"
#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"
#include "nn/nn.h"
#include "optim/optim.h"

typedef struct train_shard {
    comm_group_t *group; /* NULL: --check, which makes no update */
    int rank, size, threads;
    ddp_shards_t *cut;
    view_range_t *ranges; /* this rank's, one for each bucket; may be empty */
    int range_count;
    double *blocks; /* [block_count]: square sums of the gradients */
    size_t block_count;
    hdf5io_part_t *parts; /* [part_limit], of a checkpoint's tensors */
    int part_count, part_limit;
} train_shard_t;

typedef struct train_shard_plan {
    const ddp_config_t *config;
    const ddp_layout_t *layout;
    comm_group_t *group; /* NULL: no update will be made */
    int rank, size;
    int threads; /* of an update */
} train_shard_plan_t;

/* Cut the arena into ranges for the ranks of [plan]. Local. */
err_code_t train_shard_open(const train_shard_plan_t *plan, train_shard_t **out,
                            err_t *err);
void train_shard_close(train_shard_t *shard); /* NULL allowed */

/* Allocate the parts of [params] parameters in [slots] slots. */
err_code_t train_shard_parts_open(train_shard_t *shard, size_t params,
                                  size_t slots, err_t *err);

/* List in [tensor] which rank holds which part of [param] in [slot]. */
void train_shard_parts(train_shard_t *shard, optim_t *optim, int slot,
                       const nn_param_t *param, hdf5io_tensor_t *tensor);

/* The norm of the gradients of all ranks into *norm. This rank's ranges of
 * [grads] are scaled so that the norm is at most [limit] (0: no limit).
 * Collective. */
err_code_t train_shard_clip(train_shard_t *shard, float *grads, double limit,
                            double *norm, err_t *err);

/* Clamp this rank's gradients, as optim_clip_value. */
void train_shard_clip_value(const train_shard_t *shard, float *grads,
                            double limit);

/* An update, number [update] counted from 1. */
typedef struct train_shard_step {
    ddp_t *ddp;
    optim_t *optim;
    float *params;
    double lr;
    int64_t update;
} train_shard_step_t;

/* Make it. The ranks exchange the parameters of a bucket while they compute the
 * next bucket. Collective. */
err_code_t train_shard_update(train_shard_t *shard,
                              const train_shard_step_t *step, err_t *err);

/* Gather the whole moving average in the gradients' arena, which is unused
 * between two steps. Collective. */
err_code_t train_shard_average(const train_shard_t *shard, ddp_t *ddp,
                               const optim_t *optim, err_t *err);

#endif
