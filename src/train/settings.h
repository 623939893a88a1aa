/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The settings that the lives of a run were trained with, in files that people
 * read: RUNDIR/config.yaml, and config-N.yaml of earlier lives. */
#ifndef CDDP_TRAIN_SETTINGS_H
#define CDDP_TRAIN_SETTINGS_H

#include <stdint.h>

#include "base/err.h"
#include "train/config.h"

/*
 * Write [config], which holds from step [step] on, to [directory]/config.yaml.
 * What is there with other settings, or of a run that was ahead of [step], is
 * kept as config-N.yaml, with the lowest free N from 1; with the same settings,
 * it stays. ERR_IO.
 */
err_code_t train_settings_keep(const char *directory,
                               const train_config_t *config, int64_t step,
                               err_t *err);

#endif
