/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The run: from a checked configuration to a trained model, or to the reason
 * why it stopped. Read run.c first, then step.c, eval.c, resume.c.
 */
#ifndef CDDP_TRAIN_RUN_H
#define CDDP_TRAIN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "boot/boot.h"
#include "slurm/job.h"
#include "train/config.h"

typedef enum train_resume {
    TRAIN_RESUME_AUTO, /* the newest whole checkpoint, if there is any */
    TRAIN_RESUME_NEVER,
    TRAIN_RESUME_FRESH, /* put what is there aside and begin anew */
    TRAIN_RESUME_PATH
} train_resume_t;

/* What surrounds a run. All of it outlives train_run. */
typedef struct train_env {
    const slurm_job_t *job;
    slurm_signal_t (*signal)(void); /* what was asked of this rank so far */
    train_resume_t resume;
    const char *resume_path; /* TRAIN_RESUME_PATH */
    uint64_t build_hash;
    const char *versions; /* libraries and CPU, for the manifest; NULL: none */
    double started;       /* clock_now at main's begin */
    const char *backend;  /* group of "auto": "threads" or "ucx" */
} train_env_t;

typedef struct train_outcome {
    bool speaker;   /* this rank prints the error's sentence */
    bool have_eval; /* the numbers below are set (rank 0 and others alike) */
    double loss, accuracy; /* validation; accuracy NaN: not a classifier */
    double bound;          /* best possible accuracy, NaN: not known */
    int64_t step;
} train_outcome_t;

/*
 * Train. Takes over [boot] and closes it (after start-up, or with MPI-IO last).
 * ERR_OK: the run is complete. ERR_REQUEUE: checkpointed because it was asked
 * to stop. Else the error of the rank that found it, the same code on every
 * rank (a dead rank's survivors: ERR_PEER). Every wait is bounded by
 * fault.timeout. The lowest survivor writes RUNDIR/exit.json. Collective.
 */
err_code_t train_run(const train_config_t *config, const train_env_t *env,
                     boot_t *boot, train_outcome_t *out, err_t *err);

/*
 * `--check`: validate everything that a run of [ranks] ranks on this node would
 * meet, without training, and print layers, data, memory per rank and steps per
 * epoch to standard output. Local.
 */
err_code_t train_check(const train_config_t *config, int ranks, err_t *err);

#endif
