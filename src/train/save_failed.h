/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * save_failed: a checkpoint that cannot be written (no space, a quota, an error
 * of the storage) does not end the run. It goes on, and tries again after a
 * quarter of checkpoint.every. checkpoint.failures failures in a row end it
 * with status 74, and so does one in its last checkpoint.
 *
 * All ranks know the outcome of a save, so they decide alike: all of them call
 * train_save_failed and train_save_done after the same save.
 */
#ifndef CDDP_TRAIN_SAVE_FAILED_H
#define CDDP_TRAIN_SAVE_FAILED_H

#include "train/run_priv.h"

/* What follows the save that has failed. */
typedef enum train_after {
    TRAIN_AFTER_STEPS, /* further steps, unless the limit is reached */
    TRAIN_AFTER_BEGIN, /* another save, at once, unless the limit is reached */
    TRAIN_AFTER_SAVE,  /* another save, at once: the last one of this start */
    TRAIN_AFTER_END    /* nothing: it was the last one of this start */
} train_after_t;

/*
 * The checkpoint [saved] could not be written, as [err] (ERR_IO) says. Rank 0
 * adds that to metrics.jsonl. Returns ERR_OK if the run goes on; then rank 0
 * logs the reason and when the next try is due. Otherwise why the run ends is
 * added to [err], and its code is returned. Local.
 */
err_code_t train_save_failed(train_state_t *run, const train_saved_t *saved,
                             train_after_t after, err_t *err);

/* A save begins: what was due is being done. It was published: earlier failures
 * count no more. Local. */
void train_save_tried(train_state_t *run);
void train_save_done(train_state_t *run);

/* Is it time to try again, after run->progress.step? Equal on all ranks; always
 * false if checkpoint.every is a time. */
bool train_save_again(const train_state_t *run);

/* On rank 0: the clock instant at which a checkpoint is due if checkpoint.every
 * is a time. */
double train_save_instant(const train_state_t *run);

#endif
