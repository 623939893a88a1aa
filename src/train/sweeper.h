/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sweeper: a thread of rank 0 that deletes the files of old checkpoints
 * (hdf5io/checkpoint_sweep.h). Neither a step nor a save waits for it. What it
 * has not deleted when the run ends, the next start deletes after its first
 * save.
 *
 * Thread rule: one thread, that of the training. NULL is allowed everywhere:
 * nothing is done.
 */
#ifndef CDDP_TRAIN_SWEEPER_H
#define CDDP_TRAIN_SWEEPER_H

#include "base/err.h"

/* Seconds that a completed run waits for the last deletes, and that any run
 * waits for the file that is being deleted. */
#define TRAIN_SWEEPER_WAIT 30.0
#define TRAIN_SWEEPER_STOP 5.0

typedef struct train_sweeper train_sweeper_t;

/* Start the thread, for the checkpoints in [directory]. ERR_MEMORY. */
err_code_t train_sweeper_open(const char *directory, train_sweeper_t **out,
                              err_t *err);

/* A checkpoint was published: delete what it has retired. Does not wait. */
void train_sweeper_ask(train_sweeper_t *sweeper);

/* Wait until all is deleted, but at most [seconds]. */
void train_sweeper_wait(train_sweeper_t *sweeper, double seconds);

/* End the thread after the file that it deletes, and free. If the file system
 * does not delete this file within TRAIN_SWEEPER_STOP, the thread is left
 * alone, with the memory that it needs. */
void train_sweeper_close(train_sweeper_t *sweeper);

#endif
