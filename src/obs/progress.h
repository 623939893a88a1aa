/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* progress: what a person watching the job's output sees, on standard output.
 */
#ifndef CDDP_OBS_PROGRESS_H
#define CDDP_OBS_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "obs/metrics.h"

typedef struct obs_epoch {
    int64_t epoch, epochs; /* the one just done, from 1; of how many */
    int64_t step;
    double loss;                 /* mean of the epoch's training samples */
    double valid_loss, accuracy; /* NaN: not evaluated, not a classifier */
    const obs_value_t *values;   /* further ones, shown behind accuracy */
    int value_count;
    double seconds; /* since the run began */
} obs_epoch_t;

/* "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588  accuracy 97.90 %
 * 12.3 s", one line, flushed. Waits for a reader that has halted as long as
 * file_takes_line does; then the line is lost. */
void obs_progress_epoch(const obs_epoch_t *epoch);

/* The line itself, without newline, into [out] of [room] bytes, which is
 * returned. What is NaN is left out; many values are cut after a whole one, as
 * one write to a pipe must take the line ("..."). */
char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room);

#endif
