/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * rundir: the run directory, which belongs to one run. Rank 0 alone makes,
 * locks and writes it. A start locks the directory, then finds out whether it
 * may use what is there. If so, it changes the directory (accept); if not, it
 * leaves the directory as it was (refuse).
 */
#ifndef CDDP_TRAIN_RUNDIR_H
#define CDDP_TRAIN_RUNDIR_H

#include <stdint.h>

#include "base/err.h"
#include "train/config.h"

typedef struct train_rundir train_rundir_t;

/*
 * Make [path] if it does not exist, and lock it for this run. [owner]
 * (train_owner_text) names the run. ERR_BUSY names the owner of the lock;
 * ERR_IO says why [path] cannot be made or written. The kernel releases the
 * lock when the process ends, however it ends. In [path] only the owner's name
 * in the lock file changes.
 */
err_code_t train_rundir_open(const char *path, const char *owner,
                             train_rundir_t **out, err_t *err);

/*
 * The run starts at step [step] in this directory: make checkpoints/, remove
 * temporary files of killed runs, and write config.yaml, the resolved
 * configuration (see settings.h).
 */
err_code_t train_rundir_accept(train_rundir_t *rundir,
                               const train_config_t *config, int64_t step,
                               err_t *err);

/* The start is refused: undo the changes of train_rundir_open (the owner's
 * name, or the lock file and the directory if it made them). NULL allowed. */
void train_rundir_refuse(train_rundir_t *rundir);

/* Check that the path still is the directory that [rundir] locked. ERR_IO: it
 * was removed, renamed or replaced. Files written to the path would then be
 * lost, or mixed with those of another run. */
err_code_t train_rundir_check(const train_rundir_t *rundir, err_t *err);

void train_rundir_close(train_rundir_t *rundir); /* NULL allowed */

#endif
