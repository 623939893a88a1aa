/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * resumed: does what a checkpoint says of its run agree with this run? Other
 * data or settings are logged, or refused where the results would be wrong.
 */
#ifndef CDDP_TRAIN_RESUMED_H
#define CDDP_TRAIN_RESUMED_H

#include "hdf5io/checkpoint.h"
#include "train/config.h"

/* This run, and where it goes on. */
typedef struct train_resumed {
    const train_config_t *config;
    const hdf5io_progress_t *progress; /* of the checkpoint */
    int64_t samples;                   /* that data.train has now */
    int64_t epoch_steps;
    const hdf5io_mark_t *marks; /* hashes of the data as it is now */
    int mark_count;
    bool speaks; /* rank 0 logs */
} train_resumed_t;

/* Another number of training samples changes their order from here on: a
 * warning, or ERR_DATA with train.reproducible. Pure but for the log; all ranks
 * get the same outcome. */
err_code_t train_resumed_data(const train_resumed_t *resumed, err_t *err);

/* Are the samples those that the checkpoint at [path] has seen? A warning, or
 * ERR_DATA with train.reproducible. Rank 0 only; reads the manifest. */
err_code_t train_resumed_marks(const train_resumed_t *resumed, const char *path,
                               err_t *err);

/* Are the settings those that the checkpoint at [path] was written with? Each
 * difference is logged; ERR_CONFIG if the run is complete with other settings.
 * Rank 0 only; reads the manifest. */
err_code_t train_resumed_settings(const train_resumed_t *resumed,
                                  const char *path, err_t *err);

#endif
