/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nodeset: local checkpoints (checkpoint.local): the saver writes node sets
 * (hdf5io/nodeset.h) between the checkpoints of the run directory. A start
 * reads the newest whole set if no checkpoint is newer.
 *
 * In a line of a run, each step continues the step before it. A start that
 * resumes from a set continues the line of the set. Any other start, and a
 * rollback, begins a new line. A start reads only sets of the newest line. So
 * each line has a number, which is in the name of the directory of the sets on
 * a node, DIR/cddp-RUN-LINE-HOST (the home). RUNDIR/local has both numbers, and
 * the nodes that may have sets (line.h).
 *
 * Without checkpoint.local the functions do nothing, except for
 * train_nodeset_leave and train_nodeset_accept.
 */
#ifndef CDDP_TRAIN_NODESET_H
#define CDDP_TRAIN_NODESET_H

#include "train/run_priv.h"

typedef struct train_nodeset train_nodeset_t;

/* After the saver was opened: find the nodes of all ranks. All ranks get one
 * outcome. Collective; blocks. */
err_code_t train_nodeset_open(train_state_t *run, err_t *err);
void train_nodeset_close(train_state_t *run);

/* This rank ends because of [fault]: see train_saver_tell. */
void train_nodeset_tell(const train_state_t *run, const err_t *fault);

/* ---- the start ----------------------------------------------------------- */

/* Read the newest whole set, unless a checkpoint of the run directory is newer
 * or the set belongs to another model; *found is false then. ERR_IO or ERR_DATA
 * if the names of the checkpoints cannot be listed: then it is unknown which
 * one is newer. All ranks get one outcome. Collective; blocks. */
err_code_t train_nodeset_restore(train_state_t *run, bool *found,
                                 hdf5io_checkpoint_info_t *info, err_t *err);

/* Call it after train_nodeset_restore has found no set. [step] is that of the
 * newest whole checkpoint of the run directory; -1: none is whole. Does a
 * damaged checkpoint have a later step? Then train_nodeset_restore has not
 * looked at sets that may be newer than [step]. Equal on all ranks. */
bool train_nodeset_hidden(const train_state_t *run, int64_t step);
/* If train_nodeset_hidden has returned true: read the newest whole set of a
 * later step than [step]. If there is none, *found is false, and the tensors
 * are unchanged. Otherwise as train_nodeset_restore. */
err_code_t train_nodeset_restore_hidden(train_state_t *run, int64_t step,
                                        bool *found,
                                        hdf5io_checkpoint_info_t *info,
                                        err_t *err);

/* The set that was read does not fit the run. The run continues from another
 * checkpoint. All ranks call it. Local. */
void train_nodeset_drop(train_state_t *run);

/* The rank that can read the manifest from which the run has resumed: 0, or one
 * whose node has the set. */
int train_nodeset_teller(const train_state_t *run);

/* After a start that has resumed from [step], from a checkpoint or a set: the
 * step of the newest checkpoint of the run directory; -1: there is none. */
int64_t train_nodeset_below(const train_state_t *run, int64_t step);

/* Rank 0 calls this before the start changes the run directory. If
 * checkpoint.local is not set, or if this start has to obey --fresh or
 * --resume: end the line of the run, so that no later start reads a set of this
 * line, even if this start dies. Otherwise nothing is done. ERR_IO, ERR_MEMORY.
 * Local. */
err_code_t train_nodeset_leave(train_state_t *run, err_t *err);

/* The start is accepted: begin a new line unless the run has resumed from a
 * set, and delete the sets of older lines on the nodes, also in other
 * directories that checkpoint.local named before. If RUNDIR/local cannot be
 * written, rank 0 says so and removes the file, and this start writes no local
 * checkpoints; ERR_IO if the file cannot be removed. Without checkpoint.local
 * no line begins: the sets of earlier starts are deleted. Then the file is
 * removed, unless nodes outside of this start may have sets, or a set could not
 * be deleted. All ranks get one outcome. Collective; blocks. */
err_code_t train_nodeset_accept(train_state_t *run, err_t *err);

/* The run goes back to a checkpoint: begin a new line. Collective; blocks. */
err_code_t train_nodeset_back(train_state_t *run, err_t *err);

/* ---- saves --------------------------------------------------------------- */

/* Is a local checkpoint due now, and no save in progress? A local checkpoint
 * that is due during a save is left out. Equal on all ranks. */
bool train_nodeset_due(const train_state_t *run);

/* See train_save_t.write; the context is the run. */
err_code_t train_nodeset_write(const train_save_t *save,
                               const hdf5io_votes_t *votes, err_t *err);

/* The save of [step] has ended with [rc]. A set that could not be written does
 * not end the run: ERR_OK is returned. (But storage that does not answer ends
 * the run: see train_saver_join.) Rank 0 logs the failure if it is the first
 * one in a row. Local. */
err_code_t train_nodeset_saved(train_state_t *run, int64_t step, err_code_t rc,
                               err_t *err);

/* The run ends with [rc]. If this is an orderly end, and the run directory has
 * a checkpoint of the last step, the first rank of each node deletes the sets.
 * Otherwise the sets stay for the next start. Local. */
void train_nodeset_end(const train_state_t *run, err_code_t rc);

#endif
