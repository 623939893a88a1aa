/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * order: a run that is resumed within an epoch must finish it in the order in
 * which it was begun. Otherwise some samples of the epoch would be used twice
 * and others not at all. From the next epoch on any settings are possible.
 */
#ifndef CDDP_TRAIN_ORDER_H
#define CDDP_TRAIN_ORDER_H

#include "hdf5io/checkpoint.h"
#include "train/data.h"
#include "train/resumed.h"
#include "train/vote.h"

/* The order depends on the chunks of the files. If ranks see copies with other
 * chunks, all take the order of rank 0's files. Collective, after all ranks
 * have found the same shards and samples. */
err_code_t train_order_agree(const train_votes_t *votes,
                             const train_split_t *split, train_data_t *data,
                             err_t *err);

/* Can the epoch of the checkpoint be finished with [now], the order in which
 * this run would read it, or in the order in which it was begun? ERR_CONFIG
 * names the setting that differs; or the version of the order is not known
 * here. Another number of lanes is allowed if the run file does not set it: it
 * was the default when the epoch was begun. Other limits of units, as the data
 * was stored with other chunks: a warning, or ERR_DATA with train.reproducible.
 * Pure except for the log; all ranks get one outcome. */
err_code_t train_order_check(const train_resumed_t *resumed,
                             const hdf5io_order_t *now, err_t *err);

/* The number of the epoch that must be read in progress->order, or -1. There is
 * one if the checkpoint in [progress] is within an epoch, and this order is of
 * version 1 or has lanes. An epoch has [steps] steps. */
int64_t train_order_old(const hdf5io_progress_t *progress, int64_t steps);

#endif
