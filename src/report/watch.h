/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* watch: shows a run while it runs, from any node that sees its directory. */
#ifndef CDDP_REPORT_WATCH_H
#define CDDP_REPORT_WATCH_H

#include "base/err.h"

/*
 * Print the state of the run in [dir] to standard output until it has ended
 * (complete, or with a status after which it is not started again): on a
 * terminal a plot that is drawn again, otherwise a line when something has
 * changed, and the plot at the end. Looks at the files every [seconds], since
 * the kernel does not tell of writes of other nodes. A run that is interrupted,
 * or waits for Slurm, is watched on. Blocks; a signal ends the process.
 * ERR_DATA: no run directory. ERR_IO, ERR_MEMORY.
 */
err_code_t report_watch(const char *dir, double seconds, err_t *err);

#endif
