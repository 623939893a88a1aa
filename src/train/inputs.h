/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* inputs: is the data the reason for a loss or gradient that is not finite? */
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

/* If [value], which messages call [what], is not finite: ERR_DATA if this
 * rank's [batch] is the reason, else ERR_DIVERGED. */
err_code_t train_number_check(const train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* The same for a [value] that all ranks have in common: bad data of one rank
 * gives all ranks ERR_DATA. Collective if [value] is not finite. */
err_code_t train_number_agree(train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* ERR_DIVERGED: [what] became [value] ("nan") in step [step]. Names the newest
 * checkpoint, of [saved_step] (-1: none). */
err_code_t train_diverged(const char *what, const char *value, int64_t step,
                          int64_t saved_step, err_t *err);

#endif
