/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plateau: schedules that watch a metric. check: does the run have what its
 * schedule watches? ERR_CONFIG. lr: the schedule's rate after all cuts. eval,
 * epoch: an evaluation, or the last step of an epoch, is done. owed: is the
 * evaluation of this step, if it was due, still to be seen? resumed: say if the
 * checkpoint that the run goes on from holds nothing of what is watched.
 */
#ifndef CDDP_TRAIN_PLATEAU_H
#define CDDP_TRAIN_PLATEAU_H

#include "train/run_priv.h"

err_code_t train_plateau_check(train_state_t *run, err_t *err);
double train_plateau_lr(const train_state_t *run, double lr);
void train_plateau_eval(train_state_t *run, const train_eval_t *eval);
void train_plateau_epoch(train_state_t *run);
bool train_plateau_owed(const train_state_t *run);
void train_plateau_resumed(const train_state_t *run);

#endif
