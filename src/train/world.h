/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * world: this rank among the others of its run. It agrees with them (votes) and
 * tells them of its progress, so that nobody takes it for stuck. Thread rule:
 * one thread.
 */
#ifndef CDDP_TRAIN_WORLD_H
#define CDDP_TRAIN_WORLD_H

#include "boot/boot.h"
#include "comm/comm.h"
#include "hdf5io/h5mpi.h"
#include "train/patience.h"
#include "train/vote.h"

typedef struct train_world {
    boot_t *boot;        /* NULL once closed */
    comm_group_t *group; /* of control and data: on CPUs one group does both */
    comm_group_t *sync;  /* of syncbatchnorm layers, not owned; NULL: none */
    h5mpi_t *mpi;        /* data.io or checkpoint.io is mpi, else NULL */
    train_votes_t votes;
    train_patience_t *patience; /* NULL: one rank */
    int rank, size;
    bool speaker;        /* this rank prints the error of the last vote */
    const char *phase;   /* what this rank does now, a static text */
    const int64_t *step; /* updates so far, told with the phase */
} train_world_t;

/* train_vote of all ranks; the winner becomes the speaker. Collective. */
err_code_t train_world_vote(train_world_t *world, err_code_t code, err_t *err);

/* Set the phase of this rank, and report progress to the other ranks. */
void train_phase_set(train_world_t *world, const char *phase);

/* The same for a phase in which storage may be slow, until train_storage_end.
 * Call it again before the end to report progress. */
void train_storage_begin(train_world_t *world, const char *phase);
void train_storage_end(train_world_t *world);

#endif
