/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What --fresh, --resume never and --resume PATH ask of the run directory, done
 * once in the life of a job: Slurm starts a requeued job with the same command
 * line, and what that asked for was done in the first life, unless that was
 * killed before. RUNDIR/begun names the job that has done it.
 */
#ifndef CDDP_TRAIN_BEGIN_H
#define CDDP_TRAIN_BEGIN_H

#include "train/run_priv.h"

/*
 * Before anybody reads: never refuses a directory with checkpoints
 * (ERR_CONFIG), which would later be resumed from the wrong run. *first: the
 * command line counts; else this is a later life of a job that has done what it
 * asks for, and goes on from its own checkpoints. Changes nothing. Rank 0
 * looks, all get the outcome. Collective.
 */
err_code_t train_begin(train_state_t *run, bool *first, err_t *err);

/*
 * Once the start is accepted: --fresh puts the checkpoints and metrics of other
 * runs aside under names that nothing has; with --resume PATH checkpoints that
 * the run leaves behind get other names, and so do metrics of another run. Of
 * rank 0; local.
 */
err_code_t train_begin_done(const train_state_t *run, err_t *err);

#endif
