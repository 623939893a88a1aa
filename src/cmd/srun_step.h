/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One step of a job: starts srun, passes its standard error on, and waits until
 * it has ended. Signals to this process are handled meanwhile:
 * - TERM: Slurm ends the job and has sent TERM to the ranks itself. INT: so has
 *   the terminal. Both are only noted.
 * - USR1 and USR2 are passed on to srun, which passes them on to the ranks.
 *
 * Thread rule: one thread; the signals stay blocked from srun_signals_open on.
 */
#ifndef CDDP_CMD_SRUN_STEP_H
#define CDDP_CMD_SRUN_STEP_H

#include <stdbool.h>

#include "base/err.h"
#include "slurm/job.h"

typedef struct srun_signals {
    int fd;
    bool ends; /* TERM or INT has arrived */
} srun_signals_t;

/* Block the signals and make them readable. ERR_UNAVAILABLE. */
err_code_t srun_signals_open(srun_signals_t *signals, err_t *err);
void srun_signals_close(srun_signals_t *signals);

/* Wait for at most [seconds], or until a signal ends the job. */
void srun_signals_wait(srun_signals_t *signals, double seconds);

typedef struct srun_step {
    const char *const *args; /* of srun, ended by NULL; args[0] is "srun" */
    const char *run_dir;
    const slurm_job_t *job; /* restarts and attempt are those of this step */
    srun_signals_t *signals;
} srun_step_t;

typedef struct srun_result {
    int status;    /* of srun; 128 + the signal that killed it. ERR_UNAVAILABLE
                    * instead of 0 if srun launched no task */
    bool recorded; /* RUNDIR/exit.json is of this step */
    slurm_exit_found_t record;
    /* What srun said of the task that ended first, "task 2 on n1: Killed", or
     * else its first error; "": nothing. */
    char words[256];
    char said[1024]; /* the first sentence of cddp-train; "": none */
    /* No rank has run, because srun could not start the step; and the node that
     * was the reason, "" if srun named none. */
    bool unlaunched;
    char unlaunched_host[64];
    bool busy;      /* unlaunched, because Slurm took the nodes for busy */
    bool job_gone;  /* unlaunched, because Slurm has ended the job */
    bool cancelled; /* Slurm ended the step and named no reason: scancel */
} srun_result_t;

/*
 * Run a step. A step that still runs SRUN_OUTLIVES seconds after one of its
 * ranks has written RUNDIR/exit.json is killed: some rank hangs outside of the
 * group, where no other rank notices it. ERR_UNAVAILABLE: srun cannot be
 * started. Blocks until the step has ended.
 */
#define SRUN_OUTLIVES 30.0
err_code_t srun_step_run(const srun_step_t *step, srun_result_t *out,
                         err_t *err);

#endif
