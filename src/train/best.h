/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * best: the checkpoint of the best evaluation (checkpoint.best). An evaluation
 * that is better than all before makes a checkpoint due, which then stays until
 * another one is better. All ranks have the same numbers, so they decide alike.
 */
#ifndef CDDP_TRAIN_BEST_H
#define CDDP_TRAIN_BEST_H

#include "train/run_priv.h"

/* ERR_CONFIG, equal on all ranks, if there is no evaluation to be the best. */
err_code_t train_best_check(const train_state_t *run, err_t *err);

/* Learn which checkpoint was the best so far of this line of the run. All ranks
 * get one outcome. Collective. */
err_code_t train_best_open(train_state_t *run, err_t *err);

/* An evaluation was made: is it the best one, so that a checkpoint is due? */
bool train_best_eval(train_state_t *run, const train_eval_t *eval);

/* Fill [out] if the state of the current step is the best. False: it is not. */
bool train_best_of(const train_state_t *run, hdf5io_best_t *out);

/* A save of the current step begins. It was written; it could not be: if no
 * later evaluation was better, the best one is the one before. Evaluations may
 * come between begin and end. */
void train_best_saving(train_state_t *run);
void train_best_saved(train_state_t *run);
void train_best_unsaved(train_state_t *run);

/* The run has gone back to the checkpoint of run->dir.saved_step: evaluations
 * whose checkpoints were not written count no more. */
void train_best_back(train_state_t *run);

#endif
