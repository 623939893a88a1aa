/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* inputs: whose fault a loss or gradient is that is no number. */
#ifndef CDDP_TRAIN_INPUTS_H
#define CDDP_TRAIN_INPUTS_H

#include "train/run_priv.h"

/* ERR_DATA if one of [count] samples of [batch], read from [data],
 * holds what is no number: names file and row. Without data nothing is. */
err_code_t train_inputs_check(const train_state_t *run,
                              const train_data_t *data, const nn_batch_t *batch,
                              int64_t count, err_t *err);

/* If [value], called [what] in the sentence, is no number: ERR_DATA if this
 * rank's [batch] is to blame, else ERR_DIVERGED. */
err_code_t train_number_check(const train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* The same where [value] is the same on all ranks: one rank's bad data ends
 * all. Then collective. */
err_code_t train_number_agree(train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err);

/* ERR_DIVERGED: [what] became [value] in [step]; says what is kept. */
err_code_t train_diverged(const train_state_t *run, const char *what,
                          const char *value, int64_t step, err_t *err);

#endif
