/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The lock of a run directory, for commands of cddp-ckpt that change it. */
#ifndef CDDP_CMD_CKPT_LOCK_H
#define CDDP_CMD_CKPT_LOCK_H

#include "base/err.h"

#define CMD_CKPT_UNLOCKED (-1) /* there is no lock file */
#define CMD_CKPT_REFUSED (-2)  /* it cannot be locked */

/* Lock the run directory [run]. [home] is its directory of checkpoints, which
 * may be a link; if [run] is [home] itself, the directory above it is locked.
 * Returns the descriptor of the lock file, which the caller closes, or one of
 * the numbers above. After CMD_CKPT_REFUSED *why is ERR_BUSY if another process
 * has the lock, and ERR_IO if the file system has no locks or the lock file
 * cannot be opened. */
int cmd_ckpt_lock(const char *run, const char *home, err_t *why);

#endif
