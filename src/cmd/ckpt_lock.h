/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The lock of a run directory, for commands of cddp-ckpt that change it. */
#ifndef CDDP_CMD_CKPT_LOCK_H
#define CDDP_CMD_CKPT_LOCK_H

#include "base/err.h"

#define CMD_CKPT_UNLOCKED (-1) /* there is no lock file */
#define CMD_CKPT_REFUSED (-2)  /* it cannot be locked */

/* Lock the run directory [run], or the one above [home], its directory of
 * checkpoints, if [run] names that itself. [home] may be a link to another
 * place. Returns the open lock file, which the caller closes, or one of the
 * above. If it is refused, *why is the sentence: ERR_BUSY if another process
 * has the lock, ERR_IO if the file system has no locks or the file cannot be
 * opened. */
int cmd_ckpt_lock(const char *run, const char *home, err_t *why);

#endif
