/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* outcome: what a run tells its caller and the other ranks, and what it leaves
 * in its directory when it ends: exit.json (why it ended) and summary.json (its
 * results). */
#ifndef CDDP_TRAIN_OUTCOME_H
#define CDDP_TRAIN_OUTCOME_H

#include "train/run_priv.h"

void train_outcome_fill(const train_state_t *run, train_outcome_t *out);

/* Return whether this rank prints and writes for all ranks. It is the lowest
 * rank that is certainly alive. The node of a dead rank may be lost, so a rank
 * of another node is chosen, if there is one. But if [rc] is ERR_MEMORY and
 * [err] has a culprit, it is a rank of the culprit's node: only ranks there
 * know why the culprit died (oom.h). */
bool train_outcome_speaks(const train_world_t *world, err_code_t rc,
                          const err_t *err);

/* The run ends because of [fault], an ERR_PEER that one group of this rank has
 * returned. Other ranks may not know the fault yet: tell them in all groups, so
 * that they do not take this rank for the culprit when it leaves. Does not
 * wait. */
void train_outcome_tell_fault(train_state_t *run, const err_t *fault);

/* Return whether the run ended with [rc] because its start was refused. Such a
 * run leaves the directory as it was and writes no record: all ranks end with
 * one status, so srun's status is right. A start that failed but may be tried
 * again does write a record, which names the culprit. */
bool train_outcome_start_refused(const train_dir_t *dir, err_code_t rc);

/* Write exit.json, and the end of lives.jsonl. If it cannot be written, a
 * warning is logged, and the status of the run does not change. */
void train_outcome_record(const train_state_t *run, err_code_t rc,
                          const err_t *err);

/* Write summary.json of a run that ends with [rc]; [why] has the message of an
 * error. If the start was refused, the summary of an earlier life stays. */
err_code_t train_outcome_summary(const train_state_t *run, err_code_t rc,
                                 const err_t *why, err_t *err);

/* The storage of checkpoint.local does not answer this rank. So this rank ends
 * with [rc]; [err] has the message. Do what train_outcome_record and
 * train_outcome_summary do, but in a thread, as the storage of the run
 * directory may not answer either: this rank waits for the thread for at most
 * 30 s. Rank 0 also does this if it is the culprit itself: if no rank gets an
 * answer from its storage, no other rank records how the run ended. [run] must
 * stay until the process ends, and no other thread may change it. Local;
 * blocks. */
void train_outcome_record_in_thread(const train_state_t *run, err_code_t rc,
                                    const err_t *err);

#endif
