/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard: ZeRO-1 in a run (ddp.zero: 1). Each rank has its own ranges of the
 * arena. It keeps the optimizer's state, the moving average included, of these
 * ranges only, updates them and sends the new parameters to all ranks. The
 * norms of gradients and tensors come from sums of squares. The sums of squares
 * of all blocks are gathered and added in a fixed order: if the summed
 * gradients have the same bits as without shards, the update has them, too
 * (docs/COMM.md). Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_SHARD_H
#define CDDP_TRAIN_SHARD_H

#include "comm/comm.h"
#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/mirror.h"

typedef struct train_shard {
    comm_group_t *group; /* NULL with --check, which makes no update */
    dev_device_t *dev;
    int rank, size;
    ddp_shards_t *cut;
    view_range_t *ranges; /* this rank's, one for each bucket; may be empty */
    int range_count;
    /* [block_count]: sums of squares of the gradients in a block; memory of
     * [dev]. */
    double *blocks;
    size_t block_count;
    dev_event_t *written; /* the numbers that ranks sum; NULL: not used */
    const train_mirror_t *mirror; /* where [parts] find the state's numbers */
    hdf5io_part_t *parts; /* [part_limit]: parts of a checkpoint's tensors */
    int part_count, part_limit;
} train_shard_t;

typedef struct train_shard_plan {
    const ddp_config_t *config;
    const ddp_layout_t *layout;
    dev_device_t *dev;   /* has gradients and parameters */
    comm_group_t *group; /* NULL if no update will be made */
    int rank, size;
} train_shard_plan_t;

/* Divide the arena into ranges for the ranks of [plan]. Local. */
err_code_t train_shard_open(const train_shard_plan_t *plan, train_shard_t **out,
                            err_t *err);
void train_shard_close(train_shard_t *shard); /* NULL allowed */

/* Is an update only enqueued on the stream of the device? If not, the host
 * waits for the exchanges of ranks. Equal on all ranks. */
bool train_shard_enqueues(const train_shard_t *shard);

/* Return how many bytes of the device's memory updates need, and allocate them.
 * Allocate only when it is known that so many bytes are free. */
size_t train_shard_bytes(const train_shard_t *shard);
err_code_t train_shard_alloc(train_shard_t *shard, err_t *err);

/* Allocate memory for the parts of [params] parameters in [slots] slots. The
 * parts will be at the host's addresses of [mirror]. */
err_code_t train_shard_parts_open(train_shard_t *shard,
                                  const train_mirror_t *mirror, size_t params,
                                  size_t slots, err_t *err);

/* Write to [tensor] which rank has which part of [param] in [slot]. */
void train_shard_parts(train_shard_t *shard, optim_t *optim, int slot,
                       const nn_param_t *param, hdf5io_tensor_t *tensor);

/* Set *norm, memory of the device, to the norm of the gradients of all ranks.
 * Collective. */
err_code_t train_shard_norm(train_shard_t *shard, optim_place_t *place,
                            const float *grads, double *norm,
                            dev_stream_t *stream, err_t *err);

typedef struct train_shard_step {
    ddp_t *ddp;
    optim_t *optim;
    const optim_args_t *args;
    dev_stream_t *stream;
} train_shard_step_t;

/* Make the update [step]. The ranks exchange the parameters of a bucket while
 * they compute the next bucket. Collective. */
err_code_t train_shard_update(train_shard_t *shard,
                              const train_shard_step_t *step, err_t *err);

/* Gather the whole moving average into the gradients' arena, which is unused
 * between two steps. Collective. */
err_code_t train_shard_average(const train_shard_t *shard, ddp_t *ddp,
                               const optim_t *optim, dev_stream_t *stream,
                               err_t *err);

#endif
