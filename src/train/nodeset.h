/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nodeset: local checkpoints (checkpoint.local): the saver writes node sets
 * (hdf5io/nodeset.h) between the checkpoints of the run directory, and a start
 * reads the newest whole one if no checkpoint is newer.
 *
 * A set must be of the line of the run that goes on. So the home of the sets on
 * a node, DIR/cddp-RUN-LINE-HOST, is named after the run and its line.
 * RUNDIR/local has both numbers. A start that resumes from a set goes on with
 * its line; any other start, and a rollback, begins a new line.
 *
 * Without checkpoint.local the functions do nothing, but for
 * train_nodeset_leave.
 */
#ifndef CDDP_TRAIN_NODESET_H
#define CDDP_TRAIN_NODESET_H

#include "train/run_priv.h"

typedef struct train_nodeset train_nodeset_t;

/* After the saver was opened: find the nodes of all ranks. All ranks get one
 * outcome. Collective; blocks. */
err_code_t train_nodeset_open(train_state_t *run, err_t *err);
void train_nodeset_close(train_state_t *run);

/* The rank of this fault ends: see train_saver_tell. */
void train_nodeset_tell(const train_state_t *run, const err_t *fault);

/* ---- the start ----------------------------------------------------------- */

/* Read the newest whole set, unless a checkpoint of the run directory is newer
 * or the set belongs to another model; *found is false then. ERR_IO or ERR_DATA
 * if the names of the checkpoints cannot be listed: then nobody knows which is
 * newer. All ranks get one outcome. Collective; blocks. */
err_code_t train_nodeset_restore(train_state_t *run, bool *found,
                                 hdf5io_checkpoint_info_t *info, err_t *err);

/* The set that was read does not fit the run, which goes on from another
 * checkpoint. All ranks call it. Local. */
void train_nodeset_drop(train_state_t *run);

/* The rank that can read the manifest from which the run has resumed: 0, or one
 * whose node has the set. */
int train_nodeset_teller(const train_state_t *run);

/* The step of the newest checkpoint of the run directory, -1 if there is none,
 * after a start that has resumed from one of [step], or from a set of it. */
int64_t train_nodeset_below(const train_state_t *run, int64_t step);

/* Rank 0, before the start changes the run directory: end the line of the run,
 * so that no later start takes a set of it, even if this one dies. Without
 * checkpoint.local, and in the life that does what --fresh or --resume asks;
 * otherwise nothing is done. ERR_IO. Local. */
err_code_t train_nodeset_leave(const train_state_t *run, err_t *err);

/* The start is accepted: begin a new line unless the run has resumed from a
 * set, and delete what older lines of the run have left on the nodes. If
 * RUNDIR/local cannot be written, rank 0 says so, and there are no local
 * checkpoints; ERR_IO if it cannot be removed then. All ranks get one outcome.
 * Collective; blocks. */
err_code_t train_nodeset_accept(train_state_t *run, err_t *err);

/* The run goes back to a checkpoint: begin a new line. Collective; blocks. */
err_code_t train_nodeset_back(train_state_t *run, err_t *err);

/* ---- saves --------------------------------------------------------------- */

/* Is a local checkpoint due now, and no other save in progress? One that is due
 * meanwhile is left out. Equal on all ranks. */
bool train_nodeset_due(const train_state_t *run);

/* See train_save_t.write; the context is the run. */
err_code_t train_nodeset_write(const train_save_t *save,
                               const hdf5io_votes_t *votes, err_t *err);

/* The save of [step] has ended with [rc]. A set that could not be written does
 * not end the run: the first time in a row rank 0 says so, and ERR_OK is
 * returned. Local. */
err_code_t train_nodeset_saved(train_state_t *run, int64_t step, err_code_t rc,
                               err_t *err);

/* The run ends with [rc]. After an orderly end and a checkpoint of the last
 * step in the run directory, the first rank of each node deletes the sets.
 * Otherwise they stay for the next start. Local. */
void train_nodeset_end(const train_state_t *run, err_code_t rc);

#endif
