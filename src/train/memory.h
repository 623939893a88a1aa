/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * memory: what a replica needs of its device's memory, by kind. It is known
 * from the plan, before anything is allocated there, so that a run that does
 * not fit is refused at once, with the numbers.
 */
#ifndef CDDP_TRAIN_MEMORY_H
#define CDDP_TRAIN_MEMORY_H

#include "train/replica.h"

typedef enum train_memory_kind {
    TRAIN_MEMORY_PARAMS,
    TRAIN_MEMORY_GRADS,
    TRAIN_MEMORY_PARTIALS, /* of the reproducible mode */
    TRAIN_MEMORY_HOOK,     /* of a comm hook in the memory of the gradients */
    TRAIN_MEMORY_OPTIMIZER,
    TRAIN_MEMORY_NORM, /* sums of squares, with ddp.zero: 1 */
    TRAIN_MEMORY_BUFFERS,
    TRAIN_MEMORY_ACTIVATIONS,
    /* On a host those that are read ahead, on another device the two that it
     * has. */
    TRAIN_MEMORY_BATCHES,
    /* The most that decoded chunks and short rows of both splits may need. It
     * is 0 until the caller sets it by hdf5io_dataset_chunks_most, and stays 0
     * for a device, as they are in the host's memory. */
    TRAIN_MEMORY_CHUNKS,
    /* The plan of the batches, and the buffers of all reads that run at a time
     * (train_data_reading). The caller sets it; 0 for a device. */
    TRAIN_MEMORY_READING,
    /* What this rank writes of a checkpoint, with checkpoint.async. 0 on a
     * device: its mirror is the copy, in the host's memory. */
    TRAIN_MEMORY_SAVE,
    TRAIN_MEMORY_KINDS
} train_memory_kind_t;

typedef struct train_memory {
    uint64_t bytes[TRAIN_MEMORY_KINDS];
    /* Memory of the host for a comm hook that works on a copy of a device's
     * gradients, with this copy. Not part of the total. */
    uint64_t hook_away;
} train_memory_t;

/* Set *out to what [replica] needs, whose execs are planned. Without a data
 * group in [plan], several ranks sum gradients by the backend that a run with
 * ucx would choose for them (train_device_nccl). Local. */
err_code_t train_memory_of(const train_replica_plan_t *plan,
                           const train_replica_t *replica, train_memory_t *out,
                           err_t *err);

/* Bytes of [count] batches of this rank. */
uint64_t train_memory_batches(const train_replica_plan_t *plan, int64_t count);

/* Bytes of what this rank writes of a checkpoint: its share of what all ranks
 * hold, and with ddp.zero its own state of the optimizer. The state of a comm
 * hook is not counted, as it is not known here. */
uint64_t train_memory_share(const train_replica_plan_t *plan,
                            const train_replica_t *replica);

uint64_t train_memory_total(const train_memory_t *memory);

/* The kind for people: "parameters". */
const char *train_memory_name(train_memory_kind_t kind);

/* ERR_MEMORY, with plan and free bytes, if the model of [plan] cannot fit into
 * the memory of its device: on a host, see limits.h; on another device, if
 * [replica] needs more than is free. */
err_code_t train_memory_check(const train_replica_plan_t *plan,
                              const train_replica_t *replica, err_t *err);

#endif
