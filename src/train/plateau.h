/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plateau: a schedule that watches a metric and cuts the learning rate when the
 * metric stops improving. What it has seen is part of the run's progress, so a
 * resumed run goes on with it. The metric has the same bits on all ranks, so
 * all ranks cut at the same step. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_PLATEAU_H
#define CDDP_TRAIN_PLATEAU_H

#include "hdf5io/checkpoint.h"
#include "optim/optim.h"
#include "train/eval.h"

typedef struct train_plateau {
    const optim_schedule_t *schedule;
    const optim_t *optim;
    hdf5io_progress_t *progress;
    bool speaks; /* rank 0 logs */
} train_plateau_t;

/* Does the run evaluate what its schedule watches? ERR_CONFIG if not. */
err_code_t train_plateau_check(const train_plateau_t *plateau,
                               const train_config_t *config,
                               const train_evaluator_t *evaluator, err_t *err);

/* The schedule's rate [lr] after all cuts. */
double train_plateau_lr(const train_plateau_t *plateau, double lr);

/* An evaluation is done, or the last step of an epoch. */
void train_plateau_eval(const train_plateau_t *plateau,
                        const train_eval_t *eval);
void train_plateau_epoch(const train_plateau_t *plateau);

/* The schedule watches evaluations and has not seen one of this step. */
bool train_plateau_owed(const train_plateau_t *plateau);

/* Log it if the checkpoint that the run goes on from has seen no metric. */
void train_plateau_resumed(const train_plateau_t *plateau);

#endif
