/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What --fresh and --resume never ask of the run directory before anybody reads
 * it, done once in the life of a job: Slurm starts a requeued job with the same
 * command line, and what that asked for was done in the first life, unless that
 * was killed before. RUNDIR/begun names the job that has done it.
 */
#ifndef CDDP_TRAIN_BEGIN_H
#define CDDP_TRAIN_BEGIN_H

#include "train/run_priv.h"

/*
 * --fresh puts the checkpoints and metrics of other runs aside under names that
 * nothing has; never refuses a directory with checkpoints (ERR_CONFIG), which
 * would later be resumed from the wrong run. Rank 0 acts, all get the outcome.
 * Collective.
 */
err_code_t train_begin(train_state_t *run, err_t *err);

/* This is a later life of a job, which goes on from its own checkpoints. */
bool train_begin_done(const train_state_t *run);

#endif
