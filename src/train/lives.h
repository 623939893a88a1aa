/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* lives: what a run adds to its history, RUNDIR/lives.jsonl (obs/lives.h). A
 * line that cannot be written is a warning: it does not end the run. */
#ifndef CDDP_TRAIN_LIVES_H
#define CDDP_TRAIN_LIVES_H

#include "obs/lives.h"
#include "train/run_priv.h"

/* The start is accepted: add "begin", and "resumed" if a checkpoint was read,
 * or "weights" if the run begins with given weights. Rank 0 only. */
void train_lives_begin(const train_state_t *run);

/* Add a line. Only the rank that writes for all; does nothing for a run without
 * a run directory. */
void train_lives_add(const train_state_t *run, const obs_lives_line_t *line);

/* What the history says of checkpoints before this start. */
#define TRAIN_LIVES_SAVES 16
typedef struct train_lives_past {
    double save_s;  /* seconds of the slowest of the newest TRAIN_LIVES_SAVES
                       checkpoints; 0: there is none */
    bool kill_wait; /* a start of this job has said that KillWait is shorter
                       than a checkpoint */
} train_lives_past_t;
train_lives_past_t train_lives_past(const train_state_t *run);

/* The run ends with [rc]: add to the history the line "end", and before it
 * "fault" if a rank is to blame. Only the rank that writes for all calls
 * this. */
void train_lives_end(const train_state_t *run, err_code_t rc, const err_t *err);

#endif
