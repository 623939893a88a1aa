/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* limits: how long the job may run, and how long its processes live after
 * SIGTERM, as the controller says. */
#ifndef CDDP_SLURM_LIMITS_H
#define CDDP_SLURM_LIMITS_H

#include <stdbool.h>

#include "slurm/ask.h"
#include "slurm/job.h"

typedef struct slurm_limits {
    /* Clock instant (base/clock.h) at which Slurm ends the job; INFINITY: there
     * is no time limit, or it is unknown. */
    double end;
    double kill_wait; /* seconds from SIGTERM to SIGKILL; NAN: unknown */
} slurm_limits_t;

/* Nothing is known. */
slurm_limits_t slurm_limits_none(void);

/*
 * Ask the controller by two calls of scontrol. The time left is the difference
 * of two times on the controller's clock, so neither the clock of this node nor
 * a later correction of that clock matters. (SLURM_JOB_END_TIME would be no
 * better: Slurm before 23.02 does not set it, it is a time on the controller's
 * clock, too, and it is wrong once the limit was changed.) [how] gives two
 * members of slurm_command_t: what cancels the calls, and their environment.
 * [how] NULL: nothing cancels them, and they have the environment of this
 * process. Without a job, the result is that of slurm_limits_none.
 * ERR_UNAVAILABLE: scontrol is missing (in containers), fails, or prints
 * something else. Blocks for at most 2 x SLURM_ASK_TIMEOUT.
 */
err_code_t slurm_limits_ask(const slurm_job_t *job, const slurm_command_t *how,
                            slurm_limits_t *out, err_t *err);

/* Read the limits from the output of `scontrol show job` and `scontrol show
 * config`, which was received at the clock instant [now]. Times in it are in
 * seconds since 1970 (SLURM_TIME_FORMAT=%s). False: there are no such times. */
bool slurm_limits_parse(const char *job, const char *config, double now,
                        slurm_limits_t *out);

#endif
