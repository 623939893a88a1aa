/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * watch: asks for the limits of the job (slurm/limits.h) once, in a thread of
 * its own, so that a slow controller delays nobody. A controller that does not
 * answer is asked again every SLURM_WATCH_EVERY seconds.
 *
 * Thread rule: open, limits and close are called from one thread.
 */
#ifndef CDDP_SLURM_WATCH_H
#define CDDP_SLURM_WATCH_H

#include "slurm/limits.h"

typedef struct slurm_watch slurm_watch_t;

#define SLURM_WATCH_EVERY 30.0

/* A run that still starts up this many seconds before the end of the job is
 * told to give up (slurm_signal_late). */
#define SLURM_WATCH_MARGIN 15.0

/* Start to ask about [job], which must outlive the watch. ERR_MEMORY,
 * ERR_UNAVAILABLE. Does not block. */
err_code_t slurm_watch_open(const slurm_job_t *job, slurm_watch_t **out,
                            err_t *err);

/* True once the controller has answered: then *out is its answer. Never blocks.
 * [watch] NULL: false. */
bool slurm_watch_limits(const slurm_watch_t *watch, slurm_limits_t *out);

/* May be called while the controller is being asked, and then cancels the
 * question. NULL allowed. Blocks only briefly. */
void slurm_watch_close(slurm_watch_t *watch);

#endif
