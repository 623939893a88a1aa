/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * open: the phases of train_open that a start for another purpose needs, too
 * (predict.c, train_open_bench). Unless stated otherwise they are collective,
 * block, and give all ranks one outcome.
 */
#ifndef CDDP_TRAIN_OPEN_H
#define CDDP_TRAIN_OPEN_H

#include "train/run_priv.h"

/* What opens the train or valid split. Local. */
train_split_t train_open_split(train_state_t *run, bool valid);

/* Do local work, then vote on its result and on whether a rank is asked to
 * leave. */
err_code_t train_open_voted(train_state_t *run,
                            err_code_t (*work)(train_state_t *run, err_t *err),
                            err_t *err);

/* Rank 0 has read the best possible accuracy; any rank may have to write it. */
err_code_t train_open_bound(train_state_t *run, err_t *err);

/* Check that all ranks see equal samples of a split, named [what] in
 * messages. */
err_code_t train_open_compare(train_state_t *run, const char *what,
                              train_data_t *data, err_t *err);

/* Rank 0: can the run begin with the weights of checkpoint.init? Local. */
err_code_t train_open_init_check(train_state_t *run, err_t *err);

/* Open the replica. Without training data it can only evaluate. */
err_code_t train_open_replica(train_state_t *run, err_t *err);

/* Give the replica its weights: those in the mirror if [restored], otherwise
 * the initial ones. */
err_code_t train_open_start(train_state_t *run, bool restored, err_t *err);

/* resume.c: read the checkpoint from which the run would resume; *found: there
 * is one. What else a resume compares is not looked at. */
err_code_t train_restore_weights(train_state_t *run, bool *found, err_t *err);

#endif
