/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * kept: all tensors of a checkpoint: those of the replica, and the comm hook's
 * as "hook/PART". A part that differs between ranks (residuals) has a row for
 * each rank. The hook's state cannot be used by another number of ranks or
 * another hook: then the hook starts with zeros, and a warning is logged.
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_KEPT_H
#define CDDP_TRAIN_KEPT_H

#include "ddp/ddp.h"
#include "hdf5io/checkpoint_share.h"
#include "hdf5io/nodeset.h"
#include "train/config.h"
#include "train/mirror.h"
#include "train/shard.h"

typedef struct train_kept {
    hdf5io_tensor_t *tensors; /* [count]; the hook's tensors come last */
    char **names;             /* [count], owned */
    int count, hook_count;
    /* [hook_count]: the hook's state, at addresses of the host. */
    ddp_hook_part_t hook[DDP_HOOK_PARTS];
    hdf5io_share_t *share; /* what this rank writes of them */
    int *heads; /* [size] of the ranks (train_writers_open); may be NULL */
    hdf5io_part_t *rows; /* which rank has which row of the hook's tensors */
} train_kept_t;

/* Where the tensors are. [mirror] has the arenas params, buffers, those of the
 * optimizer's slots, and the hook's state if that is on the device. Checkpoints
 * are written from the mirror's addresses on the host, and read to them. */
typedef struct train_kept_plan {
    const train_config_t *config;
    const nn_graph_t *graph;
    const train_mirror_t *mirror;
    const float *params, *buffers;
    optim_t *optim;
    train_shard_t *shard; /* NULL unless ddp.zero is 1 */
    ddp_t *ddp;
    const comm_group_t *group;
} train_kept_plan_t;

/* List the tensors of [plan], which must outlive [kept]. [kept] is zeroed
 * before; on failure, too, train_kept_close frees it. Local. */
err_code_t train_kept_open(const train_kept_plan_t *plan, train_kept_t *kept,
                           err_t *err);
void train_kept_close(train_kept_t *kept);

/* Bytes of all tensors, as they are in a checkpoint. */
double train_kept_bytes(const train_kept_t *kept);

/* What to read; see hdf5io_checkpoint_read. */
typedef struct train_kept_source {
    const hdf5io_checkpoint_config_t *config;
    const char *path;
    /* If [set] is not NULL: read a node set of step [least] or later, and set
     * [found] to what was found (hdf5io_nodeset_read). If [set] is NULL: read a
     * checkpoint. */
    const hdf5io_nodeset_t *set;
    int64_t least;
    hdf5io_nodeset_found_t *found;
} train_kept_source_t;

/* Read all tensors of [kept] with hdf5io_checkpoint_read. If the checkpoint has
 * no hook state that fits, the hook starts with zeros, and rank 0 logs a
 * warning. Collective. */
err_code_t train_kept_read(const train_kept_t *kept,
                           const train_kept_source_t *source, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err);

#endif
