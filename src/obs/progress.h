/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* progress: lines on standard output for people who watch the job. */
#ifndef CDDP_OBS_PROGRESS_H
#define CDDP_OBS_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "obs/metrics.h"

typedef struct obs_epoch {
    int64_t epoch,
        epochs; /* number of the finished epoch, from 1; of the run */
    int64_t step;
    double loss;                 /* mean of the epoch's training samples */
    double valid_loss, accuracy; /* NaN: not evaluated, not a classifier */
    const obs_value_t *values;   /* further numbers, printed after accuracy */
    int value_count;
    double seconds; /* since the run began */
} obs_epoch_t;

/* "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588  accuracy 97.90 %
 * 12.3 s", one line, flushed. If the reader of the output has stopped reading,
 * the call waits as long as file_takes_line does; then the line is lost. */
void obs_progress_epoch(const obs_epoch_t *epoch);

/* Format the line, without newline, into [out] of [room] bytes; returns [out].
 * NaN is left out. If there are too many values, the line ends with "..." after
 * a whole value, as it must fit into one write to a pipe. */
char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room);

#endif
