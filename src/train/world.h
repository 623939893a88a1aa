/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * world: this rank and the other ranks of its run. It votes with them, and
 * reports its progress, so that no rank considers it stuck. Thread rule: one
 * thread.
 */
#ifndef CDDP_TRAIN_WORLD_H
#define CDDP_TRAIN_WORLD_H

#include "boot/boot.h"
#include "comm/comm.h"
#include "hdf5io/h5mpi.h"
#include "train/patience.h"
#include "train/vote.h"

typedef struct train_world {
    boot_t *boot;        /* NULL after it is closed */
    comm_group_t *group; /* of the host's memory */
    /* Of the memory that has gradients and parameters: [group], if the host can
     * access that memory. */
    comm_group_t *data;
    /* Group of syncbatchnorm layers, not owned; NULL: none. */
    comm_group_t *sync;
    h5mpi_t *mpi; /* NULL unless data.io or checkpoint.io is mpi */
    /* The run has started on a device that works by itself: its errors are
     * faults of this rank. */
    bool working;
    train_votes_t votes;
    train_patience_t *patience; /* NULL if there is only one rank */
    int rank, size;
    bool speaker;        /* this rank prints the error of the latest vote */
    const char *phase;   /* what this rank does now; a static text */
    const int64_t *step; /* number of updates so far; reported with the phase */
} train_world_t;

/* train_vote among all ranks. The rank that should print the message becomes
 * the speaker. If [code] is an error of the device in mid-run, all ranks get
 * ERR_PEER with this rank as culprit. Collective. */
err_code_t train_world_vote(train_world_t *world, err_code_t code, err_t *err);

/* This rank cannot go on because of [err]. If that is an error of its device in
 * mid-run, tell the other ranks, and change [err] to ERR_PEER with this rank as
 * culprit. Returns err->code. */
err_code_t train_world_lost(train_world_t *world, err_t *err);

/* This rank ends because of [fault], an ERR_PEER: tell the other ranks in each
 * group of the world, as ranks may know the fault in one group only. */
void train_world_tell(train_world_t *world, const err_t *fault);

/* Open world->data for the memory of [dev]. [like] describes world->group,
 * except for its backend. From then on, waits for [dev] end when a rank has a
 * fault, or when [dev] makes no progress. train_world_data_close closes it.
 * Collective; blocks. */
err_code_t train_world_data_open(train_world_t *world,
                                 const comm_config_t *like, dev_device_t *dev,
                                 err_t *err);
/* Can a graph of the device contain the collectives of world->data? */
bool train_world_graphs(const train_world_t *world);
void train_world_data_close(train_world_t *world);

/* Set the phase of this rank, and report progress to the other ranks. */
void train_phase_set(train_world_t *world, const char *phase);

/* As train_phase_set, for a phase in which storage may be slow. It lasts until
 * train_storage_end. Call it again before the end to report progress. */
void train_storage_begin(train_world_t *world, const char *phase);
void train_storage_end(train_world_t *world);

#endif
