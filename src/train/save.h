/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * save: how a run writes its checkpoints. The saver's thread writes them,
 * except with io: mpi, where the training's thread does. Without
 * checkpoint.async, training waits for the saver's thread. With
 * checkpoint.async, the run makes its next steps meanwhile. When the thread of
 * rank 0 is done, rank 0 tells this in the tail of a step, and at the end of
 * that step all ranks join their threads. Rank 0 also tells this if its thread
 * still waits for storage, but the other ranks have given up the save. So all
 * ranks learn the outcome after the same step, and an error ends the run there,
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
 * If storage never answers, the wait ends with an error, except with io: mpi.
 * ERR_OK without a new run->dir.saved_step: storage refused it, and the run
 * goes on. All ranks get one outcome. Collective; blocks until it is published.
 */
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
