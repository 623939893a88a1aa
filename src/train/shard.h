/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: ZeRO-1 in a run (ddp.zero: 1). Each rank keeps the optimizer's state,
 * the moving average included, of its own ranges of the arena, makes their
 * update and hands the new parameters around. Square sums, of the clipped norm
 * and of tensors, are gathered block by block and added in one order, so the
 * update has the bits of a run without shards wherever the gradients' sums have
 * (docs/COMM.md).
 */
#ifndef CDDP_TRAIN_SHARD_H
#define CDDP_TRAIN_SHARD_H

#include "comm/comm.h"
#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"
#include "nn/nn.h"
#include "optim/optim.h"

typedef struct train_shard {
    int rank, size;
    ddp_shards_t *cut;
    view_range_t *ranges; /* this rank's, one a bucket; some may be empty */
    int range_count;
    double *blocks; /* [block_count]: square sums of the gradients */
    size_t block_count;
    hdf5io_part_t *parts; /* of the tensors of a checkpoint */
    int part_count;
} train_shard_t;

/* Cut the arena of [layout] for rank [rank] of [size]. Local. */
err_code_t train_shard_open(const ddp_config_t *config,
                            const ddp_layout_t *layout, int rank, int size,
                            train_shard_t **out, err_t *err);
void train_shard_close(train_shard_t *shard); /* NULL allowed */

/* Make room for the parts of [params] parameters in [slots] slots. */
err_code_t train_shard_parts_open(train_shard_t *shard, size_t params,
                                  size_t slots, err_t *err);

/* Say in [tensor] who holds what of [param] in [slot] of [optim]. */
void train_shard_parts(train_shard_t *shard, optim_t *optim, int slot,
                       const nn_param_t *param, hdf5io_tensor_t *tensor);

/* The norm of the gradients, of which this rank has its ranges of [grads]; they
 * are scaled so that it is at most [limit] (0: no limit). Collective. */
err_code_t train_shard_clip(train_shard_t *shard, comm_group_t *group,
                            float *grads, double limit, int threads,
                            double *norm, err_t *err);

/* Clamp this rank's gradients, as optim_clip_value. */
void train_shard_clip_value(const train_shard_t *shard, float *grads,
                            double limit, int threads);

/* Update number [update] (from 1): a bucket goes around while the next one is
 * computed. Collective. */
err_code_t train_shard_update(train_shard_t *shard, comm_group_t *group,
                              ddp_t *ddp, optim_t *optim, float *params,
                              double lr, int64_t update, err_t *err);

/* Put the whole moving average into the gradients' arena, which nobody needs
 * between two steps. Collective. */
err_code_t train_shard_average(const train_shard_t *shard, ddp_t *ddp,
                               const optim_t *optim, err_t *err);

#endif
