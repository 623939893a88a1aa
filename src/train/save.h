/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* save: when and how a run writes its checkpoints. */
#ifndef CDDP_TRAIN_SAVE_H
#define CDDP_TRAIN_SAVE_H

#include "train/run_priv.h"

/* Write a checkpoint of the current step. All ranks get one outcome.
 * Collective; blocks until it is published. */
err_code_t train_save(train_state_t *run, err_t *err);

#endif
