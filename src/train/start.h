/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* start: what a new replica does before its first step. */
#ifndef CDDP_TRAIN_START_H
#define CDDP_TRAIN_START_H

#include "train/replica.h"

/* Begin to touch the pages of gradients and optimizer state, if cores are idle
 * until the first step and the arenas are the host's memory. */
void train_start_touch(const train_replica_plan_t *plan,
                       train_replica_t *replica);

/* Rank 0 draws the initial parameters and buffers, or reads them
 * (checkpoint.init), and sends them to the mirrors of all ranks. If it cannot
 * read them, only rank 0 fails. Collective; blocks. */
err_code_t train_start_weights(const train_replica_plan_t *plan,
                               const train_replica_t *replica, err_t *err);

#endif
