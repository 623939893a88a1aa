/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The run: from a checked configuration to a trained model, or to the reason
 * why it stopped. Files to read in this order: run.c, step.c, eval.c, resume.c.
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
    TRAIN_RESUME_AUTO, /* the newest complete checkpoint, if there is any */
    TRAIN_RESUME_NEVER,
    TRAIN_RESUME_FRESH, /* rename what is in the directory and start anew */
    TRAIN_RESUME_PATH
} train_resume_t;

/* The surroundings of a run. They must outlive train_run. */
typedef struct train_env {
    const slurm_job_t *job;
    /* Returns the signal that this rank has received so far. */
    slurm_signal_t (*signal)(void);
    /* The same during start-up; NULL: no signal is looked for then. */
    slurm_signal_t (*signal_start)(void);
    train_resume_t resume;
    const char *resume_path; /* path of the checkpoint for TRAIN_RESUME_PATH */
    uint64_t build_hash;
    /* Names of libraries and CPU, for the manifest; NULL: none. */
    const char *versions;
    double started; /* clock_now at the begin of main */
    /* The file of --predict; NULL: train. */
    const char *predict;
    /* Comm backend that "auto" means: "threads" or "ucx". */
    const char *backend;
} train_env_t;

typedef struct train_outcome {
    bool speaker; /* this rank prints the error message */
    /* The device was given up: the process must end without the exit handlers
     * of its library, which could wait for it. */
    bool device_lost;
    /* A thread waits for storage that does not answer, and uses the memory of
     * the run: the process must end at once, without exit handlers. */
    bool stuck;
    bool have_eval; /* the fields below are set (on all ranks) */
    /* Of the validation samples; accuracy: NaN unless a classifier. */
    double loss, accuracy;
    double bound; /* best possible accuracy; NaN: not known */
    int64_t step;
} train_outcome_t;

/*
 * Train, or predict if env->predict is set (predict.h). Takes over [boot] and
 * closes it (after start-up, or, with MPI-IO, at the end). ERR_OK: the run is
 * complete. ERR_REQUEUE: it was asked to stop and wrote a checkpoint. Otherwise
 * the error of the rank that found it, with one code on all ranks (ERR_PEER on
 * the survivors of a dead rank). Every wait for other ranks is bounded by
 * fault.timeout. The lowest survivor writes RUNDIR/exit.json. Collective.
 */
err_code_t train_run(const train_config_t *config, const train_env_t *env,
                     boot_t *boot, train_outcome_t *out, err_t *err);

/*
 * `--check`: check everything that a run of [ranks] ranks on this node would
 * use, without training, and print layers, data, memory per rank and steps per
 * epoch to standard output. Local.
 */
err_code_t train_check(const train_config_t *config, int ranks, err_t *err);

#endif
