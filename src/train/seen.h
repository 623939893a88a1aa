/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * seen: what a run shows while it runs, and at its end: lines of progress, and
 * what its time was spent on (obs/progress.h, obs/spent.h). Rank 0 prints; all
 * ranks count their time.
 */
#ifndef CDDP_TRAIN_SEEN_H
#define CDDP_TRAIN_SEEN_H

#include "train/run_priv.h"

/* Begin to count time, at the start of main(). */
void train_seen_begin(train_state_t *run);

/* Rank 0, once the checkpoint is read and before it adds to lives.jsonl: take
 * over what earlier starts have spent, from the newest line of that file at the
 * step from which the run continues. */
void train_seen_past(train_state_t *run);

/* Rank 0 begins to print; if it cannot, it logs why. Other ranks do nothing. */
void train_seen_open(train_state_t *run);
void train_seen_close(train_state_t *run);

/* Count the time since the last mark as [kind]. */
void train_seen_mark(train_state_t *run, obs_spent_kind_t kind);

/* A step has ended at the instant [now]: count its parts, and show where the
 * run is, if it is time to. Allocates nothing. */
void train_seen_step(train_state_t *run, double now);

/* Print a line about an evaluation, or about a checkpoint. For the evaluation
 * at the end of an epoch, the line of the epoch is enough. */
void train_seen_eval(train_state_t *run, const train_eval_t *eval);
void train_seen_saved(train_state_t *run, const train_saved_t *saved);

/* Sum the CPU time and the cores over ranks. Collective; blocks. */
err_code_t train_seen_sum(train_state_t *run, err_t *err);

/* The part of the time of its cores that this start has used, of all ranks
 * after train_seen_sum, before of this rank. */
double train_seen_cpu(const train_state_t *run);

/* The run ends with [rc]. If it is complete, or goes on in a later start, rank
 * 0 prints what its time was spent on. */
void train_seen_end(train_state_t *run, err_code_t rc);

#endif
