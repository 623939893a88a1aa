/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * kept: what a checkpoint keeps of the comm hook, beside the replica's tensors:
 * "hook/PART", of which each rank holds a row where ranks differ (residuals).
 * Another number of ranks, or another hook, has no use for it: then the hook
 * starts afresh, with a warning. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_KEPT_H
#define CDDP_TRAIN_KEPT_H

#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"

typedef struct train_kept {
    hdf5io_tensor_t *tensors; /* all that a checkpoint writes */
    int count;
    hdf5io_tensor_t *hook; /* the last of them */
    int hook_count;
    hdf5io_part_t *rows; /* who holds what of those */
    char *names[DDP_HOOK_PARTS];
} train_kept_t;

/* List [tensors] (not owned) and the hook state of [ddp] for [size] ranks, of
 * which this is [rank]. [kept] is zeroed before; on failure, too,
 * train_kept_close frees it. Local. */
err_code_t train_kept_open(ddp_t *ddp, const hdf5io_tensor_t *tensors,
                           int count, int rank, int size, train_kept_t *kept,
                           err_t *err);
void train_kept_close(train_kept_t *kept);

/* As hdf5io_checkpoint_read, of all that is kept: in one go where the
 * checkpoint has the hook's state, too; else, or where another number of ranks
 * wrote it, the hook begins with none, with a warning (on rank 0). Collective.
 */
err_code_t train_kept_read(const train_kept_t *kept, ddp_t *ddp,
                           const hdf5io_checkpoint_config_t *config,
                           const char *path, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err);

#endif
