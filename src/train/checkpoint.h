/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint: what hdf5io needs to know of this run to write and read its
 * checkpoints, and what the run tells of one that was written. */
#ifndef CDDP_TRAIN_CHECKPOINT_H
#define CDDP_TRAIN_CHECKPOINT_H

#include "base/str.h"
#include "train/run_priv.h"

/* [checkpoint] points to the other members, so it must not be copied. */
typedef struct train_checkpoint_config {
    hdf5io_checkpoint_config_t checkpoint;
    hdf5io_votes_t votes;
    hdf5io_best_t best;
    char *directory;
    str_buf_t text; /* the resolved configuration */
} train_checkpoint_config_t;

/* Fill [out]; train_checkpoint_config_free frees what is inside. */
void train_checkpoint_config_fill(train_state_t *run,
                                  train_checkpoint_config_t *out);
void train_checkpoint_config_free(train_checkpoint_config_t *config);

/* A checkpoint of the current step; seconds are 0. */
train_saved_t train_saved_of(const train_state_t *run);

/* Rank 0 adds the checkpoint [saved] to lives.jsonl; [spent] is what the run's
 * time was spent on up to its step. Reads only what does not change during a
 * run, so any thread may call it. Local. */
void train_saved_add(const train_state_t *run, const train_saved_t *saved,
                     const obs_spent_t *spent);

/* [saved] is the newest checkpoint from now on: add it to the metrics and tell
 * the user. Local. */
void train_saved_note(train_state_t *run, const train_saved_t *saved);

#endif
