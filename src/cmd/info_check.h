/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info --check: do the hosts of this Slurm step offer what a run needs? */
#ifndef CDDP_CMD_INFO_CHECK_H
#define CDDP_CMD_INFO_CHECK_H

#include <stdbool.h>

#include "base/err.h"
#include "boot/boot.h"

/*
 * Compare the builds of all ranks, the clocks of the hosts, the directory [dir]
 * on all of them (shared, locks, fsync), the room in their /dev/shm, and the
 * times of all-reduces between them. Rank 0 prints one line for each kind and
 * for each finding. ERR_UNAVAILABLE on every rank if there are findings;
 * ERR_PEER if a rank dies or hangs. *speaker: this rank should print the error.
 * Collective; closes [boot]. A rank that makes no progress is given up after
 * INFO_CHECK_PATIENCE seconds by the others, and ends itself a little later.
 */
#define INFO_CHECK_PATIENCE 10.0
err_code_t info_check(boot_t *boot, const char *dir, bool *speaker, err_t *err);

#endif
