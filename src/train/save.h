/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * save: how a run writes its checkpoints: in the saver's thread. Without
 * checkpoint.async, training waits for the thread. (With io: mpi, the
 * training's thread writes them.) With checkpoint.async, the run makes the next
 * steps meanwhile. Then rank 0 tells in the tail of a step that its thread is
 * done, and at the end of that step all ranks join theirs. It also tells if its
 * thread still waits for storage, but the others have given it up. So all ranks
 * learn the outcome after the same step, and an error ends the run there,
 * unless save_failed.h lets it go on.
 */
#ifndef CDDP_TRAIN_SAVE_H
#define CDDP_TRAIN_SAVE_H

#include "train/run_priv.h"

/* Start the saver, except with io: mpi. All ranks get one outcome.
 * Collective. */
err_code_t train_save_open(train_state_t *run, err_t *err);
void train_save_close(train_state_t *run);

/* Write a checkpoint of the current step, after the save in progress. [last]:
 * it is the last one of this start; with checkpoint.async this must be so.
 * Storage that never answers is given up, except with io: mpi. ERR_OK
 * without a new run->dir.saved_step: storage refused it, and the run goes on.
 * All ranks get one outcome. Collective; blocks until it is published. */
err_code_t train_save(train_state_t *run, bool last, err_t *err);

/* Begin to write a checkpoint of the current step in the thread. The save
 * before is waited for. Returns when the next step may begin; train_end_start
 * waits for the copy. Errors are those of the save before, or of the device.
 * Collective. */
err_code_t train_save_begin(train_state_t *run, err_t *err);

/* Begin to write a local checkpoint (nodeset.h) of the current step in the
 * thread. No save is in progress. Errors are those of the device. Collective;
 * returns as train_save_begin does. */
err_code_t train_save_nodes(train_state_t *run, err_t *err);

/* Wait for the save in progress, if there is one; [last]: no other follows. All
 * ranks get one outcome.
 * After ERR_DIVERGED, run->newest has the samples of the step that was to be
 * saved: they are the reason, not those of a later step. Collective; blocks. */
err_code_t train_save_join(train_state_t *run, bool last, err_t *err);

#endif
