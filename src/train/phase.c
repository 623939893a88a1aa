/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What this rank does now, told to the others, lest they take it for stuck. */
#include "train/run_priv.h"

void train_phase_set(train_state_t *run, const char *phase)
{
    run->phase = phase;
    if (run->group != NULL)
        comm_group_report(run->group, run->progress.step, phase);
    if (train_sync_group(run->replica.sync) != NULL)
        comm_group_report(train_sync_group(run->replica.sync),
                          run->progress.step, phase);
}

void train_storage_begin(train_state_t *run, const char *phase)
{
    train_phase_set(run, phase);
    train_patience_begin(run->patience, run->progress.step, phase);
}

void train_storage_end(train_state_t *run)
{
    train_patience_end(run->patience);
}
