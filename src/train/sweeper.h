/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sweeper: a thread of rank 0 that deletes the files of old checkpoints
 * (hdf5io/checkpoint_sweep.h). No step waits for the thread. The last save of a
 * start waits for it, for a few seconds; other saves do not. If a run ends
 * before all these files are deleted, the next start deletes the others.
 *
 * Thread rule: one thread, that of the training. NULL is allowed everywhere:
 * nothing is done.
 */
#ifndef CDDP_TRAIN_SWEEPER_H
#define CDDP_TRAIN_SWEEPER_H

#include <stdbool.h>

#include "base/err.h"

/* The longest waits, in seconds: */
#define TRAIN_SWEEPER_WAIT 30.0 /* a complete run waits for all deletes */
#define TRAIN_SWEEPER_ROOM 5.0  /* the last save of a start waits for space */
#define TRAIN_SWEEPER_STOP 5.0  /* the end of a run waits for one delete */

typedef struct train_sweeper train_sweeper_t;

/* Start the thread, for the checkpoints in [directory]. ERR_MEMORY. */
err_code_t train_sweeper_open(const char *directory, train_sweeper_t **out,
                              err_t *err);

/* Let the thread delete what is left of retired checkpoints. Call it when a
 * start was accepted, and when a checkpoint was published or could not be
 * written. Does not wait. */
void train_sweeper_ask(train_sweeper_t *sweeper);

/* Wait until the thread has done what it was asked for, but at most [seconds].
 * Returns whether the thread has done this. */
bool train_sweeper_wait(train_sweeper_t *sweeper, double seconds);

/* End the thread when it has deleted its present file, and free. If the file
 * system does not delete this file within TRAIN_SWEEPER_STOP, the thread goes
 * on, and the memory that it needs is not freed. */
void train_sweeper_close(train_sweeper_t *sweeper);

#endif
