/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * resumed: compares a run with what its checkpoint says about the run that
 * wrote it. Other data or settings are logged, or refused where the results
 * would be wrong.
 */
#ifndef CDDP_TRAIN_RESUMED_H
#define CDDP_TRAIN_RESUMED_H

#include "hdf5io/checkpoint.h"
#include "train/config.h"

/* This run, and where it resumes. */
typedef struct train_resumed {
    const train_config_t *config;
    const hdf5io_progress_t *progress; /* progress stored in the checkpoint */
    int64_t samples;                   /* samples that data.train has now */
    int64_t epoch_steps;
    const hdf5io_mark_t *marks; /* hashes of the data as it is now */
    int mark_count;
    bool logs; /* this rank logs (true on rank 0) */
} train_resumed_t;

/* Check the number of training samples. Another number changes their order from
 * here on: a warning, or ERR_DATA with train.reproducible. Pure except for the
 * log; all ranks get one outcome. */
err_code_t train_resumed_data(const train_resumed_t *resumed, err_t *err);

/* Check that the samples are those that the run of the checkpoint at [path] has
 * read: otherwise a warning, or ERR_DATA with train.reproducible. Rank 0 only;
 * reads the manifest. */
err_code_t train_resumed_marks(const train_resumed_t *resumed, const char *path,
                               err_t *err);

/* Check that the settings are those with which the checkpoint at [path] was
 * written. Each difference is logged; ERR_CONFIG if the run is complete with
 * other settings. Rank 0 only; reads the manifest. */
err_code_t train_resumed_settings(const train_resumed_t *resumed,
                                  const char *path, err_t *err);

#endif
