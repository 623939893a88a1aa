/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Requeues the job. */
#ifndef CDDP_CMD_SRUN_REQUEUE_H
#define CDDP_CMD_SRUN_REQUEUE_H

#include "cmd/srun_step.h"

/*
 * Requeue the job, or this task of its array. If Slurm is configured to requeue
 * jobs that end with 75 (RequeueExit), and would not hold this job instead,
 * this is done by ending with 75; otherwise by `scontrol requeue`. A controller
 * that does not answer is asked again for SRUN_REQUEUE_PATIENCE seconds.
 * ERR_UNAVAILABLE: the job is not requeued; the sentence says how to go on.
 * Blocks.
 */
#define SRUN_REQUEUE_PATIENCE 120.0
err_code_t srun_requeue(const slurm_job_t *job, srun_signals_t *signals,
                        err_t *err);

/* Does the text of `scontrol show config` say that jobs that end with [status]
 * are requeued? */
bool srun_requeue_exit(const char *config, int status);

/* Does [about], the text of `scontrol show job`, say that the job was submitted
 * with --requeue=expedite? Slurm 25.11 and later hold such a job when it ends
 * with a status in RequeueExit. */
bool srun_requeue_holds(const char *about);

/* Does [about] say that Slurm is ending the job? Its script may still run. */
bool srun_requeue_ending(const char *about);

/* Ask the controller whether Slurm is ending [job]. False also if there is no
 * answer. Blocks for at most SLURM_ASK_TIMEOUT seconds. */
bool srun_job_is_ending(const slurm_job_t *job);

#endif
