/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The run directory: made, locked and described by rank 0 alone. It is one run.
 * So a start has it locked while it looks whether it may go on with what is
 * there, and changes it only once it may (accept); if not, it leaves it as it
 * was (refuse).
 */
#ifndef CDDP_TRAIN_RUNDIR_H
#define CDDP_TRAIN_RUNDIR_H

#include <stdint.h>

#include "base/err.h"
#include "train/config.h"

typedef struct train_rundir train_rundir_t;

/*
 * Make [path] if it is not there, and lock it for this run, which is [owner]
 * ("job 12 on host n0"). ERR_BUSY names the owner that holds it, ERR_IO says
 * why it cannot be made or written. The lock is the kernel's and goes with the
 * process, so a killed run leaves nothing to clean up. But for the owner's name
 * in the lock file nothing in [path] changes.
 */
err_code_t train_rundir_open(const char *path, const char *owner,
                             train_rundir_t **out, err_t *err);

/*
 * The run goes on from step [step] in this directory: make checkpoints/ in it,
 * remove drafts of killed runs, and write config.yaml, the resolved
 * configuration, behind a line that says from which step on it holds. A
 * config.yaml with other settings than these is kept as config-N.yaml, N
 * counting from 1.
 */
err_code_t train_rundir_accept(train_rundir_t *rundir,
                               const train_config_t *config, int64_t step,
                               err_t *err);

/* The start is refused: take back what train_rundir_open has changed, an
 * owner's name, or files and directory that were not there. NULL allowed. */
void train_rundir_refuse(train_rundir_t *rundir);

/* Is the path still the directory that [rundir] locked? ERR_IO says that it was
 * removed, renamed or replaced: what is written there now would be lost or be
 * another run's. */
err_code_t train_rundir_check(const train_rundir_t *rundir, err_t *err);

void train_rundir_close(train_rundir_t *rundir); /* NULL allowed */

#endif
