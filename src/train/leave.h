/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * leave: is this rank asked to checkpoint and leave, by a signal or because the
 * end of the job is near? Only rank 0 watches the time. Each rank tells the
 * others its answer in the tail of a step (flags.c), in the sums of an
 * evaluation, or in a vote, so all ranks leave together.
 */
#ifndef CDDP_TRAIN_LEAVE_H
#define CDDP_TRAIN_LEAVE_H

#include "train/run_priv.h"

/* Rank 0 begins to ask for the end of the job; others, and runs outside of
 * Slurm, do nothing. Local; does not block. */
void train_leave_open(train_state_t *run);

/* Rank 0 reads two things from the history: the duration of the slowest recent
 * checkpoint, which is used until a checkpoint of this life is slower, and
 * whether this job has warned of KillWait already. To be called when the run
 * directory is open. */
void train_leave_past(train_state_t *run);
void train_leave_close(train_state_t *run);

/* Return why this rank should leave; SLURM_SIGNAL_NONE: it should not. Cheap;
 * never blocks. */
slurm_signal_t train_leave_asked(train_state_t *run);

/* Return whether the time alone is a reason: always false on other ranks than
 * rank 0. */
bool train_leave_late(train_state_t *run);

/* During start-up: return ERR_REQUEUE, with its sentence in [err], if [rc] is
 * ERR_OK and this rank should leave; otherwise return [rc]. The ranks then vote
 * on the result. */
err_code_t train_leave_start(train_state_t *run, err_code_t rc, err_t *err);

/* A checkpoint took [seconds], without waiting for the one before. If KillWait
 * is too short for it, or with a saver for two, rank 0 warns, once in a job: a
 * life after a restart or a requeue does not repeat it. */
void train_leave_saved(train_state_t *run, double seconds);

#endif
