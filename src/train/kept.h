/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * kept: all tensors of a checkpoint: those of the replica, and the comm hook's
 * as "hook/PART". A part that differs between ranks (residuals) has a row for
 * each rank. The hook's state cannot be used by another number of ranks or
 * another hook: then the hook starts with zeros, and a warning is logged.
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_KEPT_H
#define CDDP_TRAIN_KEPT_H

#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"

typedef struct train_kept {
    hdf5io_tensor_t *tensors; /* [count]; the hook's tensors come last */
    int count;
    hdf5io_tensor_t *hook; /* [hook_count]: the hook's, within [tensors] */
    int hook_count;
    hdf5io_part_t *rows; /* which rank has which row of the hook's tensors */
    char *names[DDP_HOOK_PARTS];
} train_kept_t;

/* List [count] tensors (not owned) and the hook state of [ddp] for the ranks of
 * [group]. [kept] is zeroed before; on failure, too, train_kept_close frees it.
 * Local. */
err_code_t train_kept_open(ddp_t *ddp, const comm_group_t *group,
                           const hdf5io_tensor_t *tensors, int count,
                           train_kept_t *kept, err_t *err);
void train_kept_close(train_kept_t *kept);

/* What to read; see hdf5io_checkpoint_read. */
typedef struct train_kept_source {
    ddp_t *ddp;
    const hdf5io_checkpoint_config_t *config;
    const char *path;
} train_kept_source_t;

/* Read all tensors of [kept] with hdf5io_checkpoint_read. If the checkpoint has
 * no hook state that fits, the hook starts with zeros, and rank 0 logs a
 * warning. Collective. */
err_code_t train_kept_read(const train_kept_t *kept,
                           const train_kept_source_t *source, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err);

#endif
