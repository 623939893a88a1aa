/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * rollback: what a run does when training diverges (fault.diverge: rollback).
 * It reads its newest checkpoint again, which is older than the trouble, and
 * leaves out the samples of the step in which the trouble was seen. That step
 * counts, but changes nothing.
 *
 * All ranks decide alike, since they decide by numbers that were reduced over
 * ranks. What is left out is part of the run's progress, so checkpoints contain
 * it. A run that is killed in a rollback, or before its next checkpoint,
 * resumes from the same checkpoint, meets the same trouble and decides the same
 * again.
 */
#ifndef CDDP_TRAIN_ROLLBACK_H
#define CDDP_TRAIN_ROLLBACK_H

#include "train/run_priv.h"

/* Make one step as train_step does, or leave out its samples. Collective;
 * blocks. */
err_code_t train_rollback_step(train_state_t *run, err_t *err);

/*
 * After ERR_DIVERGED, whose sentence is in [err]: go back, and let [err] hold
 * no error. ERR_DIVERGED, with the reason in [err], if the run is not to go
 * back, has no checkpoint, or has gone back fault.rollbacks times; also if the
 * copies of ranks differ, for which the samples are not to blame. All ranks
 * get one outcome. Collective; blocks.
 */
err_code_t train_rollback(train_state_t *run, err_t *err);

#endif
