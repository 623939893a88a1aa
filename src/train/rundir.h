/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The run directory: made, locked and described by rank 0 alone. */
#ifndef CDDP_TRAIN_RUNDIR_H
#define CDDP_TRAIN_RUNDIR_H

#include "base/err.h"
#include "train/config.h"

typedef struct train_rundir train_rundir_t;

/*
 * Make [path] (with checkpoints/ in it) and lock it for this run, which is
 * [owner] ("job 12 on host n0"). ERR_BUSY names the owner that holds it, ERR_IO
 * says why it cannot be made or written. The lock is the kernel's and goes with
 * the process, so a killed run leaves nothing to clean up.
 */
err_code_t train_rundir_open(const char *path, const char *owner,
                             train_rundir_t **out, err_t *err);

/* Write RUNDIR/config.yaml, the resolved configuration. */
err_code_t train_rundir_config(const char *path, const train_config_t *config,
                               err_t *err);

/* Is [path] still the directory that [rundir] locked? ERR_IO says that it was
 * removed, renamed or replaced: what is written there now would be lost or be
 * another run's. */
err_code_t train_rundir_check(const train_rundir_t *rundir, const char *path,
                              err_t *err);

void train_rundir_close(train_rundir_t *rundir); /* NULL allowed */

#endif
