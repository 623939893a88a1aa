/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint: what hdf5io needs to know of this run to write and read its
 * checkpoints. */
#ifndef CDDP_TRAIN_CHECKPOINT_H
#define CDDP_TRAIN_CHECKPOINT_H

#include "base/str.h"
#include "train/run_priv.h"

/* [checkpoint] points to the other members, so it must not be copied. */
typedef struct train_checkpoint_config {
    hdf5io_checkpoint_config_t checkpoint;
    hdf5io_votes_t votes;
    char *directory;
    str_buf_t text; /* the resolved configuration */
} train_checkpoint_config_t;

/* Fill [out]; train_checkpoint_config_free frees what is inside. */
void train_checkpoint_config_fill(train_state_t *run,
                                  train_checkpoint_config_t *out);
void train_checkpoint_config_free(train_checkpoint_config_t *config);

#endif
