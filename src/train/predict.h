/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * predict: `cddp-train --predict`: the outputs of a trained model for every
 * validation sample. It is an evaluation in the reproducible mode, so the bits
 * do not depend on the number of ranks. The run directory is only read, so a
 * run may train meanwhile.
 */
#ifndef CDDP_TRAIN_PREDICT_H
#define CDDP_TRAIN_PREDICT_H

#include "train/run.h"

/* Write env->predict. If the first file of data.valid has none of the datasets
 * of targets, no file needs them: only the outputs are written, and [out] has
 * no loss. Parameters are those of the checkpoint that a run with the same
 * command line would resume from, or else of checkpoint.init. ERR_DATA: there
 * is neither. ERR_CONFIG: there is only checkpoint.init, and
 * checkpoint.init_skip is set. ERR_DATA names an input that is not finite.
 * Takes over [boot], and otherwise as train_run. ERR_REQUEUE: it was asked to
 * stop, and has written nothing. Collective; blocks. */
err_code_t train_predict(const train_config_t *config, const train_env_t *env,
                         boot_t *boot, train_outcome_t *out, err_t *err);

#endif
