/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* settings: files for users that show the settings of a run:
 * RUNDIR/config.yaml, and config-N.yaml for earlier lives with other
 * settings. */
#ifndef CDDP_TRAIN_SETTINGS_H
#define CDDP_TRAIN_SETTINGS_H

#include <stdint.h>

#include "base/err.h"
#include "train/config.h"

/*
 * Write [config], which applies from step [step] on, to
 * [directory]/config.yaml. A file with equal settings is left as it is. A file
 * with other settings, or of a run that was beyond [step], is first copied to
 * config-N.yaml, with the lowest free N from 1. ERR_IO.
 */
err_code_t train_settings_keep(const char *directory,
                               const train_config_t *config, int64_t step,
                               err_t *err);

#endif
