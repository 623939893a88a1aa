/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* inputs: tells whether bad data is the reason for a loss or gradient that is
 * not finite. */
#ifndef CDDP_TRAIN_INPUTS_H
#define CDDP_TRAIN_INPUTS_H

#include "train/data.h"

typedef struct train_state train_state_t;

/* ERR_DATA, naming file and row, if one of the [count] samples of [batch], read
 * from [data], holds a number that is not finite. ERR_OK for samples that were
 * not read from files. */
err_code_t train_inputs_check(const nn_graph_t *graph, const train_data_t *data,
                              const nn_batch_t *batch, int64_t count,
                              err_t *err);

/* If [value], named [what] in messages, is not finite: ERR_DATA if the samples
 * of this rank's [batch] are the reason, otherwise ERR_DIVERGED. */
err_code_t train_number_check(const train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* As train_number_check, for a [value] that is equal on all ranks: bad data on
 * one rank gives ERR_DATA on all ranks. Collective if [value] is not finite. */
err_code_t train_number_agree(train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* ERR_DIVERGED: [what] became [value] ("nan") in step [step]. The message names
 * the newest checkpoint, that of step [saved_step] (-1: none). */
err_code_t train_diverged(const char *what, const char *value, int64_t step,
                          int64_t saved_step, err_t *err);

#endif
