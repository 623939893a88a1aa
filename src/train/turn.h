/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * turn: the batch of a step, and what the host has to know of it before the
 * step begins. A device works by itself, and cannot report what is wrong with a
 * batch. So while the device computes one step, the host reads the batch of the
 * next, checks it, sums its weights over ranks, and starts its copy. Where the
 * host is the device, a batch is only read, at the begin of its step. Thread
 * rule: one thread.
 */
#ifndef CDDP_TRAIN_TURN_H
#define CDDP_TRAIN_TURN_H

#include "train/weigh.h"

typedef struct train_state train_state_t;

typedef struct train_turn {
    bool loaded;
    const hdf5io_batch_t *batch; /* in the host's memory */
    err_code_t rc;               /* this rank's error: it has no good batch */
    err_t err;
    train_weigh_t weigh; /* not used where the host is the device */
    double waited;       /* seconds of waiting for the loader */
} train_turn_t;

/* Load the batch of step [step] of an epoch into run->turn. This rank's own
 * error is kept there. Returns ERR_OK or ERR_PEER. Collective where the host is
 * not the device; blocks. */
err_code_t train_turn_load(train_state_t *run, int64_t step, err_t *err);

/* Load the batch of the step after the one that the device computes now, if
 * there is one, and if the host is not the device. As train_turn_load. */
err_code_t train_turn_next(train_state_t *run, err_t *err);

/* Check a batch in the host's memory, if the device cannot: ERR_DATA. [size]:
 * samples that are computed together. */
err_code_t train_turn_check(const train_state_t *run,
                            const hdf5io_batch_t *batch, int64_t size,
                            err_t *err);

#endif
