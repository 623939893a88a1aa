/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plateau: a schedule that watches a metric and cuts the learning rate when the
 * metric stops improving. The history of the metric is part of the run's
 * progress, so a resumed run continues it. The metric has the same bits on all
 * ranks, so all ranks cut at the same step. Thread rule: one thread.
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
    bool logs; /* this rank logs (true on rank 0) */
} train_plateau_t;

/* ERR_CONFIG unless the run evaluates the metric that its schedule watches. */
err_code_t train_plateau_check(const train_plateau_t *plateau,
                               const train_config_t *config,
                               const train_evaluator_t *evaluator, err_t *err);

/* The learning rate: the schedule's [lr] after all cuts. */
double train_plateau_lr(const train_plateau_t *plateau, double lr);

/* To be called after an evaluation, and after the last step of an epoch. */
void train_plateau_eval(const train_plateau_t *plateau,
                        const train_eval_t *eval);
void train_plateau_epoch(const train_plateau_t *plateau);

/* Return whether the schedule watches a metric of evaluations and has not got
 * its value for this step. */
bool train_plateau_needs_eval(const train_plateau_t *plateau);

/* Log if the checkpoint from which the run resumes has no record of the
 * metric. */
void train_plateau_resumed(const train_plateau_t *plateau);

#endif
