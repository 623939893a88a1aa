/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* outcome: what a run tells its caller, and what it leaves in its directory
 * when it ends: exit.json (why it ended) and summary.json (its results). */
#ifndef CDDP_TRAIN_OUTCOME_H
#define CDDP_TRAIN_OUTCOME_H

#include "train/run_priv.h"

void train_outcome_fill(const train_state_t *run, train_outcome_t *out);

/* Does this rank speak and write for all? That is the lowest rank that surely
 * lives. The node of a dead rank may be lost, so a rank of another node does
 * it, if there is one. */
bool train_outcome_survivor(const train_world_t *world, err_code_t rc,
                            const err_t *err);

/* Did the run end with [rc] because its start was refused? Then it leaves the
 * directory as it was and writes no record: all ranks end with the same status,
 * so srun's status is right. A start that failed and may be tried again does
 * write a record, which names the culprit. */
bool train_outcome_refused(const train_dir_t *dir, err_code_t rc);

/* Write exit.json. If it cannot be written, that is logged: the status of the
 * run stays as it is. */
void train_outcome_record(const train_state_t *run, err_code_t rc,
                          const err_t *err);

/* Write summary.json of a run that ends with [rc]; if that is an error, [why]
 * holds it. A run whose start was refused leaves that of an earlier life. */
err_code_t train_outcome_summary(const train_state_t *run, err_code_t rc,
                                 const err_t *why, err_t *err);

#endif
