/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * begin: what --fresh, --resume never and --resume PATH change in the run
 * directory. They act once in the life of a job: a requeued job, and a step
 * that cddp-srun restarts, have the same command line, and the first start has
 * acted already, unless it ended too early. RUNDIR/begun names the job for
 * which they have acted.
 */
#ifndef CDDP_TRAIN_BEGIN_H
#define CDDP_TRAIN_BEGIN_H

#include "obs/metrics.h"
#include "obs/prom.h"
#include "obs/tb.h"
#include "train/run.h"
#include "train/rundir.h"
#include "train/world.h"

/* The run directory and what this run knows of it. */
typedef struct train_dir {
    const char *path; /* run.dir */
    const train_env_t *env;
    train_rundir_t *lock;   /* held by rank 0, else NULL */
    obs_metrics_t *metrics; /* open on rank 0, else NULL */
    obs_tb_t *tb;           /* NULL: other rank, not wanted, or not possible */
    obs_prom_t *prom;       /* of every rank; NULL: not wanted, not possible */
    bool owned;             /* this run holds the lock (known on all ranks) */
    bool accepted; /* the start is accepted: the directory may change */
    bool first;    /* this life has to do what --fresh or --resume asks */
    char *resumed; /* path of the checkpoint from which the run resumes; NULL:
                      none */
    /* Steps of the newest checkpoint from which the run has resumed or which it
     * has written, and of the newest one that the run directory has. The first
     * one may be a local checkpoint. -1: none. */
    int64_t saved_step, checkpoint_step;
    double saved_at; /* clock instant of that checkpoint */
} train_dir_t;

/*
 * To be called before any checkpoint is read. --resume never refuses a
 * directory with checkpoints (ERR_CONFIG), as a later life would resume the
 * wrong run from them. Sets [dir]->first, to false in a later life of a job
 * that has already done what the command line asks: that life resumes from its
 * own checkpoints. Changes nothing in the directory. Rank 0 reads it, all ranks
 * get the outcome. Collective.
 */
err_code_t train_begin(train_dir_t *dir, train_world_t *world, err_t *err);

/*
 * To be called once the start is accepted. --fresh renames the checkpoints,
 * metrics and TensorBoard files of other runs. --resume PATH renames
 * checkpoints later than [step], the step from which the run resumes, and
 * metrics and TensorBoard files of another run. Nothing is deleted. Rank 0
 * only; local.
 */
err_code_t train_begin_done(const train_dir_t *dir, int64_t step, err_t *err);

#endif
