/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * job: what Slurm tells a step (environment, time left) and asks of it
 * (signals). Everything works outside Slurm, too: then there is no job id and
 * time has no end.
 */
#ifndef CDDP_SLURM_JOB_H
#define CDDP_SLURM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct slurm_job { /* constant after slurm_job_read */
    char id[32];           /* "123", array jobs "120_3"; "" outside Slurm */
    char step_id[64];      /* "123.0", "" outside a step */
    int tasks;             /* of the step; 1 outside */
    int restarts;          /* SLURM_RESTART_COUNT, 0 if unset */
    double end_time;       /* wall clock when the job is killed; 0: unknown */
    char host[64];
} slurm_job_t;

/* Read the environment through [lookup] (getenv in the programs, a recorded
 * environment in tests). */
err_code_t slurm_job_read(const char *(*lookup)(const char *name),
                          slurm_job_t *out, err_t *err);

typedef enum slurm_signal {
    SLURM_SIGNAL_NONE,
    SLURM_SIGNAL_CHECKPOINT, /* USR1: time is running out, or an admin asks */
    SLURM_SIGNAL_TERM        /* TERM, INT: requeue, scancel, or a peer died */
} slurm_signal_t;

/* Install handlers that only set the flag (USR1, TERM, INT). Once a process.
 * A second INT or TERM while the first is handled changes nothing. */
err_code_t slurm_signal_install(err_t *err);

/* The strongest signal so far; never blocks. */
slurm_signal_t slurm_signal_pending(void);

/* Record how this step ended: RUNDIR/exit.json, atomically. */
typedef struct slurm_exit {
    const slurm_job_t *job;
    err_code_t status;
    int rank;    /* who writes */
    int culprit; /* -1: none */
    const char *culprit_host;
    const char *phase;
    int64_t step;
    const char *text; /* the sentence */
} slurm_exit_t;

err_code_t slurm_exit_write(const char *run_dir, const slurm_exit_t *record,
                            err_t *err);

#endif
