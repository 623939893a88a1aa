/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_prune: what no run will read any more in RUNDIR/checkpoints:
 * superseded checkpoints, and debris. All calls are local.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_PRUNE_H
#define CDDP_HDF5IO_CHECKPOINT_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_leftover {
    char path[4096];
    bool superseded; /* false: debris, which may be a save in progress */
    uint64_t bytes;  /* of all its files */
} hdf5io_leftover_t;

/* List superseded checkpoints and debris in [directory], newest first. Debris
 * that a run would resume from, since it is intact and newer than all published
 * checkpoints, is left out. The caller frees the list. ERR_IO. */
err_code_t hdf5io_prune_list(const char *directory, hdf5io_leftover_t **out,
                             int *count, err_t *err);

/* Remove [leftover]: its manifest first, so that nobody takes what a crash
 * leaves of it for a checkpoint. ERR_IO. */
err_code_t hdf5io_prune_remove(const hdf5io_leftover_t *leftover, err_t *err);

#endif
