/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The lock of a run directory, for commands of cddp-ckpt that change it. */
#ifndef CDDP_CMD_CKPT_LOCK_H
#define CDDP_CMD_CKPT_LOCK_H

#define CMD_CKPT_UNLOCKED (-1) /* there is no lock file */
#define CMD_CKPT_HELD (-2)     /* a run holds it, or nobody can */

/* Lock the run directory [run], or the one above [home], its directory of
 * checkpoints, if [run] names that itself. [home] may be a link to another
 * place. Returns the open lock file, which the caller closes, or one of the
 * above. */
int cmd_ckpt_lock(const char *run, const char *home);

#endif
