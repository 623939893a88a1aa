/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * job: what Slurm tells a step (environment, end of the job) and asks of it
 * (signals). All functions work outside Slurm, too: then there is no job id and
 * no end.
 */
#ifndef CDDP_SLURM_JOB_H
#define CDDP_SLURM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct slurm_job { /* constant after slurm_job_read */
    char id[32];           /* "123", array jobs "120_3"; "" outside Slurm */
    char step_id[64];      /* "123.0", "" outside a step */
    char array[16];        /* number of the task in its array, "3"; "": none */
    int tasks;             /* of the step; 1 outside */
    int restarts;          /* SLURM_RESTART_COUNT, 0 if unset */
    double end_time;       /* wall clock when the job is killed; 0: unknown */
    char host[64];
} slurm_job_t;

/* Read the environment through [lookup] (getenv in the programs, a recorded
 * environment in tests). */
err_code_t slurm_job_read(const char *(*lookup)(const char *name),
                          slurm_job_t *out, err_t *err);

/*
 * Find job->end_time if the environment does not have it (before Slurm 23.02).
 * This runs `squeue`, which asks the controller, so only one rank should call
 * it, once. Blocks for at most SLURM_ASK_TIMEOUT seconds. Does nothing if the
 * end is known or there is no job; a job without limit keeps 0. ERR_UNAVAILABLE
 * if squeue is missing (in containers), fails or takes too long: the end stays
 * unknown.
 */
#define SLURM_ASK_TIMEOUT 10.0
err_code_t slurm_job_find_end(slurm_job_t *job, err_t *err);

/* Seconds in what `squeue -o %L` prints ("1-02:03:04", "5:00"), INFINITY for
 * "UNLIMITED"; false for anything else ("INVALID", "NOT_SET"). */
bool slurm_time_parse(const char *text, double *seconds);

typedef enum slurm_signal {
    SLURM_SIGNAL_NONE,
    SLURM_SIGNAL_CHECKPOINT, /* USR1: time is running out, or an admin asks */
    SLURM_SIGNAL_TERM /* TERM, INT, HUP: requeue, scancel, or a peer died */
} slurm_signal_t;

/* Install handlers that only set a flag (USR1, TERM, INT), and ignore PIPE, for
 * the whole process. A second call changes nothing, and a second INT or TERM
 * neither. Interrupted system calls are restarted. */
err_code_t slurm_signal_install(err_t *err);

/* The strongest signal so far; never blocks. */
slurm_signal_t slurm_signal_pending(void);

/*
 * Record how this step ended: RUNDIR/exit.json, atomically. A supervisor (the
 * sbatch template) prefers a record of its own step, which it knows by step id
 * and restart count, to srun's exit status. One key per line, in this order:
 * job, step_id, restarts, status, name, requeue, rank, host, culprit,
 * culprit_host, phase, step, text, time. Unknown strings are null.
 */
typedef struct slurm_exit {
    const slurm_job_t *job;
    err_code_t status;
    int rank;                 /* that writes the record */
    int culprit;              /* -1: none */
    const char *culprit_host; /* NULL: unknown */
    const char *phase;        /* NULL: unknown */
    int64_t step;             /* training step; -1: before the first */
    const char *text;         /* the error message; NULL: none */
} slurm_exit_t;

err_code_t slurm_exit_write(const char *run_dir, const slurm_exit_t *record,
                            err_t *err);

#endif
