/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * job: reads what Slurm tells a step (environment, signals), and writes the
 * record of how the step ended. All functions work outside Slurm, too; the job
 * then has no id.
 */
#ifndef CDDP_SLURM_JOB_H
#define CDDP_SLURM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct slurm_job {
    char id[32]; /* job id "123", of an array job "120_3"; "" outside Slurm */
    char step_id[64]; /* id of the step, "123.0"; "" outside a step */
    char array[16];   /* SLURM_ARRAY_TASK_ID, also outside Slurm; "": unset */
    int tasks;        /* number of tasks of the step; 1 outside Slurm */
    int restarts;     /* SLURM_RESTART_COUNT, 0 if unset */
    /* Number of this start within one life of the job, from 1: cddp-srun sets
     * CDDP_ATTEMPT. */
    int attempt;
    char nodes[256]; /* SLURM_STEP_NODELIST, "n[1-2]", cut if longer; "" */
    char host[64];
} slurm_job_t;

/* Read the environment through [lookup] (getenv in the programs, a recorded
 * environment in tests). ERR_CONFIG if one of Slurm's variables that holds a
 * number holds anything else. */
err_code_t slurm_job_read(const char *(*lookup)(const char *name),
                          slurm_job_t *out, err_t *err);

typedef enum slurm_signal {
    SLURM_SIGNAL_NONE,
    /* no signal: the end of the job is near (train/leave.h) */
    SLURM_SIGNAL_TIME,
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

/* The number of the signal [name], "USR1" or "SIGUSR1", if it can be one of
 * fault.signals; otherwise 0. SLURM_SIGNAL_NAMES lists them. */
#define SLURM_SIGNAL_NAMES "USR1, USR2, TERM, XCPU, INT, HUP"
int slurm_signal_number(const char *name);

/* After slurm_signal_install: choose which signals set a flag. These are the
 * [count] signals in [names], and always INT and HUP. If [names] lacks USR1,
 * USR1 is ignored; if it lacks TERM, TERM ends the process at once. ERR_CONFIG:
 * a name is not known. */
err_code_t slurm_signal_choose(const char *const *names, int count, err_t *err);

/*
 * A run that starts up may wait at a place that looks at no flag. So, from this
 * call until slurm_signal_started, the handler of SIGALRM calls [give_up]
 * SLURM_START_PATIENCE seconds after the first signal. [give_up] should end the
 * process. Only for a program that has the process to itself.
 */
#define SLURM_START_PATIENCE 4
void slurm_signal_start(void (*give_up)(int number));
void slurm_signal_started(void);

/* Act as if a signal had come, but set no flag: [give_up] is called in
 * SLURM_START_PATIENCE seconds if the run still starts up then. Any thread may
 * call this. */
void slurm_signal_late(void);

/* From here on, a third INT (Ctrl-C) within 3 s ends the process at once, as
 * INT does by default: a shell then shows status 130. */
void slurm_signal_impatient(void);

/* The strongest signal received so far (TERM before CHECKPOINT). Never blocks.
 */
slurm_signal_t slurm_signal_pending(void);

/* Return the name of the last received signal of the kind [signal], such as
 * "USR1", or the usual name of this kind if none was received. Static text. */
const char *slurm_signal_name(slurm_signal_t signal);

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
    /* Why a process died, such as "out of memory: ...". NULL: this is not
     * known; slurm_exit_cause may add it. */
    const char *cause;
} slurm_exit_t;

/*
 * Write [run_dir]/exit.json atomically. A supervisor (the sbatch template)
 * prefers this record to srun's exit status, if step id and restart count are
 * those of its own step. One key per line, in this order: job, step_id,
 * restarts, attempt, status, name, requeue, rank, host, culprit, culprit_host,
 * phase, step, text, cause, time. Unknown strings are null. ERR_IO, ERR_MEMORY.
 */
err_code_t slurm_exit_write(const char *run_dir, const slurm_exit_t *record,
                            err_t *err);

/* A record as it was read. Strings are "" where the record has null. */
typedef struct slurm_exit_found {
    char job[32], step_id[64], culprit_host[64];
    char text[ERR_TEXT_MAX]; /* cut if longer */
    char cause[256];
    char time[32]; /* when it was written */
    int restarts, attempt, status, culprit;
    int64_t step;
} slurm_exit_found_t;

/* Read [run_dir]/exit.json. ERR_DATA: it is no regular file, or no such record.
 * ERR_IO: it is missing or cannot be read. */
err_code_t slurm_exit_read(const char *run_dir, slurm_exit_found_t *out,
                           err_t *err);

/* Set the cause in [run_dir]/exit.json, if the record has none. ERR_DATA,
 * ERR_IO. */
err_code_t slurm_exit_cause(const char *run_dir, const char *cause, err_t *err);

#endif
