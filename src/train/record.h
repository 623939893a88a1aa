/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * record: where the numbers of a run go: metrics.jsonl and TensorBoard's files
 * (rank 0), and the file for Prometheus (every rank). What cannot be written is
 * a warning: it does not end the run. Local.
 */
#ifndef CDDP_TRAIN_RECORD_H
#define CDDP_TRAIN_RECORD_H

#include "train/run_priv.h"

/* The start is accepted. ERR_IO or ERR_DATA: metrics.jsonl cannot be opened;
 * for the others that is a warning, too. No rank makes a step before all ranks
 * were here. */
err_code_t train_record_open(train_state_t *run, err_t *err);

/* A step is done; it is recorded on every [train.log_every]-th step. An
 * evaluation is done. */
void train_record_step(train_state_t *run, const obs_step_t *row);
void train_record_eval(train_state_t *run, const train_eval_t *eval);

/* A checkpoint is about to be written; it was published; it could not be
 * written. */
void train_record_saving(train_state_t *run);
void train_record_saved(train_state_t *run, const train_saved_t *saved);
typedef struct train_unsaved {
    int64_t step, epoch;
    const char *path, *reason; /* of the checkpoint; a sentence */
    int64_t failures;          /* in a row, with this one */
} train_unsaved_t;
void train_record_unsaved(train_state_t *run, const train_unsaved_t *unsaved);

/* A rank or a host, whose name is [host], was found to be slow. */
void train_record_slow(train_state_t *run, const obs_slow_t *slow,
                       const char *host);

/* Write a row that says what each rank needed since the previous such row, and
 * begin the next row. */
void train_record_ranks(train_state_t *run, obs_ranks_t *ranks);

/* The run has gone back to run->progress.step: rows of later steps are
 * removed. */
err_code_t train_record_back(train_state_t *run, err_t *err);

void train_record_close(train_state_t *run);

#endif
