/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * begin: what --fresh, --resume never and --resume PATH change in the run
 * directory. They do it once in the life of a job: Slurm starts a requeued job
 * with the same command line, whose wishes were fulfilled in the first life,
 * unless that life ended before. RUNDIR/begun names the job that has done it.
 */
#ifndef CDDP_TRAIN_BEGIN_H
#define CDDP_TRAIN_BEGIN_H

#include "obs/metrics.h"
#include "train/run.h"
#include "train/rundir.h"
#include "train/world.h"

/* The run directory, as the run sees it. */
typedef struct train_dir {
    const char *path; /* run.dir */
    const train_env_t *env;
    train_rundir_t *lock;   /* rank 0 */
    obs_metrics_t *metrics; /* rank 0 */
    bool owned;             /* this run holds the lock (known on all ranks) */
    bool accepted; /* the start is accepted: the directory may change */
    bool first;    /* do what the command line says of resuming */
    char *resumed; /* the checkpoint that the run goes on from; NULL: none */
    int64_t saved_step; /* of the newest checkpoint; -1: none */
    double saved_at;    /* clock */
} train_dir_t;

/*
 * Before anybody reads: --resume never refuses a directory with checkpoints
 * (ERR_CONFIG), from which a later life would resume the wrong run. Sets
 * [dir]->first. False: this is a later life of a job that has done what the
 * command line says, so it goes on from its own checkpoints. Changes nothing in
 * the directory. Rank 0 reads it, all ranks get the outcome. Collective.
 */
err_code_t train_begin(train_dir_t *dir, train_world_t *world, err_t *err);

/*
 * Once the start is accepted: --fresh renames the checkpoints and metrics of
 * other runs. --resume PATH renames checkpoints that are ahead of step [step],
 * from which the run goes on, and metrics of another run. Nothing is deleted.
 * Rank 0 only; local.
 */
err_code_t train_begin_done(const train_dir_t *dir, int64_t step, err_t *err);

#endif
