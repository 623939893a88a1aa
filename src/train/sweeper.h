/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sweeper: a thread of rank 0 that deletes the files of old checkpoints
 * (hdf5io/checkpoint_sweep.h). No step waits for it, and no save but the last
 * one of a start, for a few seconds. What it has not deleted when the run ends,
 * the next start deletes.
 *
 * Thread rule: one thread, that of the training. NULL is allowed everywhere:
 * nothing is done.
 */
#ifndef CDDP_TRAIN_SWEEPER_H
#define CDDP_TRAIN_SWEEPER_H

#include <stdbool.h>

#include "base/err.h"

/* Seconds that a completed run waits for the last deletes; that the last save
 * of a start waits for the space of old checkpoints; and that any run waits for
 * the file that is being deleted. */
#define TRAIN_SWEEPER_WAIT 30.0
#define TRAIN_SWEEPER_ROOM 5.0
#define TRAIN_SWEEPER_STOP 5.0

typedef struct train_sweeper train_sweeper_t;

/* Start the thread, for the checkpoints in [directory]. ERR_MEMORY. */
err_code_t train_sweeper_open(const char *directory, train_sweeper_t **out,
                              err_t *err);

/* Delete what retired checkpoints have left: a start was accepted, a checkpoint
 * was published, or one could not be written. Does not wait. */
void train_sweeper_ask(train_sweeper_t *sweeper);

/* Wait until all is deleted that was asked for, but at most [seconds]. Returns
 * false if it is not deleted yet. */
bool train_sweeper_wait(train_sweeper_t *sweeper, double seconds);

/* End the thread after the file that it deletes, and free. If the file system
 * does not delete this file within TRAIN_SWEEPER_STOP, the thread is left
 * alone, with the memory that it needs. */
void train_sweeper_close(train_sweeper_t *sweeper);

#endif
