/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* progress: lines on standard output for people who watch the job. */
#ifndef CDDP_OBS_PROGRESS_H
#define CDDP_OBS_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "obs/metrics.h"

typedef struct obs_epoch {
    /* number of the finished epoch, from 1; number of epochs of the run */
    int64_t epoch, epochs;
    int64_t step;
    double loss; /* mean loss over the training samples of the epoch */
    /* NaN: not evaluated, or accuracy of a model that is no classifier */
    double valid_loss, accuracy;
    const obs_value_t *values; /* further numbers, printed after accuracy */
    int value_count;
    double seconds; /* seconds since the run began */
} obs_epoch_t;

/* Print one line to standard output and flush it: "epoch 3/5 step 235 loss
 * 0.0612 valid loss 0.0588 accuracy 97.90 % 12.3 s". If the reader of the
 * output has stopped reading, the call waits as long as file_takes_line does;
 * then the line is dropped. */
void obs_progress_epoch(const obs_epoch_t *epoch);

/* Format the line of obs_progress_epoch, without newline, into [out] of [room]
 * bytes; returns [out]. NaN is left out. The line must fit into one write to a
 * pipe, so after too many values it ends with "..." behind a whole value. */
char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room);

#endif
