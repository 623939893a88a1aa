/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * job: reads what Slurm tells a step (environment, end of the job, signals),
 * and writes the record of how the step ended. All functions work outside
 * Slurm, too; the job then has no id and no end.
 */
#ifndef CDDP_SLURM_JOB_H
#define CDDP_SLURM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct slurm_job { /* constant after slurm_job_find_end */
    char id[32]; /* job id "123", of an array job "120_3"; "" outside Slurm */
    char step_id[64]; /* id of the step, "123.0"; "" outside a step */
    char array[16];   /* index in the job array, "3"; "": no array */
    int tasks;        /* number of tasks of the step; 1 outside Slurm */
    int restarts;     /* SLURM_RESTART_COUNT, 0 if unset */
    /* Number of this start within one life of the job, from 1: cddp-srun sets
     * CDDP_ATTEMPT. */
    int attempt;
    char nodes[256]; /* SLURM_STEP_NODELIST, "n[1-2]", cut if longer; "" */
    /* wall-clock time at which Slurm kills the job; 0: unknown */
    double end_time;
    char host[64];
} slurm_job_t;

/* Read the environment through [lookup] (getenv in the programs, a recorded
 * environment in tests). ERR_CONFIG if one of Slurm's variables that holds a
 * number holds anything else. */
err_code_t slurm_job_read(const char *(*lookup)(const char *name),
                          slurm_job_t *out, err_t *err);

/*
 * Find job->end_time if the environment does not have it (before Slurm 23.02).
 * This runs `squeue`, which asks the controller, so only one rank should call
 * it, once. Blocks for at most SLURM_ASK_TIMEOUT seconds (ask.h). Does nothing
 * if the end is known or there is no job; a job without limit keeps 0.
 * ERR_UNAVAILABLE if squeue is missing (in containers), fails or takes too
 * long; the end then stays unknown.
 */
err_code_t slurm_job_find_end(slurm_job_t *job, err_t *err);

/* Convert the time that `squeue -o %L` prints ("1-02:03:04", "5:00") to
 * seconds; INFINITY for "UNLIMITED". Returns false for any other text
 * ("INVALID", "NOT_SET"). */
bool slurm_time_parse(const char *text, double *seconds);

typedef enum slurm_signal {
    SLURM_SIGNAL_NONE,
    /* USR1: the job's time runs out, or somebody asked for a checkpoint */
    SLURM_SIGNAL_CHECKPOINT,
    SLURM_SIGNAL_TERM /* TERM, INT, HUP: end of the run (requeue, scancel, a
                         peer died) */
} slurm_signal_t;

/* Install signal handlers for the whole process: USR1, TERM, INT and HUP
 * (unless ignored, as under nohup) only set a flag; PIPE and XFSZ are ignored.
 * A second call, and a second signal of the same kind, change nothing.
 * Interrupted system calls are restarted. ERR_CONFIG if the kernel refuses. */
err_code_t slurm_signal_install(err_t *err);

/* The strongest signal received so far (TERM before CHECKPOINT). Never blocks.
 */
slurm_signal_t slurm_signal_pending(void);

/* How a step ended. */
typedef struct slurm_exit {
    const slurm_job_t *job;
    err_code_t status;
    int rank;                 /* rank that writes the record */
    int culprit;              /* rank that caused the failure; -1: none */
    const char *culprit_host; /* NULL: unknown */
    const char *phase;        /* NULL: unknown */
    int64_t step;             /* training step; -1: before the first */
    const char *text;         /* the error message; NULL: none */
} slurm_exit_t;

/*
 * Write [run_dir]/exit.json atomically. A supervisor (the sbatch template)
 * prefers this record to srun's exit status, if step id and restart count are
 * those of its own step. One key per line, in this order: job, step_id,
 * restarts, attempt, status, name, requeue, rank, host, culprit, culprit_host,
 * phase, step, text, time. Unknown strings are null. ERR_IO, ERR_MEMORY.
 */
err_code_t slurm_exit_write(const char *run_dir, const slurm_exit_t *record,
                            err_t *err);

/* A record as it was read. Strings are "" where the record has null. */
typedef struct slurm_exit_found {
    char job[32], step_id[64], culprit_host[64];
    char text[ERR_TEXT_MAX]; /* cut if longer */
    char time[32];           /* when it was written */
    int restarts, attempt, status, culprit;
    int64_t step;
} slurm_exit_found_t;

/* Read [run_dir]/exit.json. ERR_DATA: it is no regular file, or no such record.
 * ERR_IO: it is missing or cannot be read. */
err_code_t slurm_exit_read(const char *run_dir, slurm_exit_found_t *out,
                           err_t *err);

#endif
