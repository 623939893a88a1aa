/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_sweep: deletes the files of retired checkpoints, while the run
 * goes on. A save with retire_later (checkpoint.h) renames an old checkpoint to
 * .trash-step-... and deletes its manifest. What is left is a remainder: no
 * reader takes it for a checkpoint. All calls are local.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_SWEEP_H
#define CDDP_HDF5IO_CHECKPOINT_SWEEP_H

#include <stdbool.h>

#include "hdf5io/checkpoint_dir.h"

typedef struct hdf5io_sweep {
    const char *directory; /* RUNDIR/checkpoints */
    /* Called before each file is deleted: true ends the sweep. */
    bool (*stop)(void *context);
    void *context;
} hdf5io_sweep_t;

/* Delete all remainders in the directory. Failures are logged. A save in the
 * same directory may be in progress. Blocks while the file system deletes a
 * file. */
void hdf5io_sweep(const hdf5io_io_t *io, const hdf5io_sweep_t *sweep);

/* Make the renamed checkpoint [path] a remainder: delete its manifest.
 * ERR_IO. */
err_code_t hdf5io_sweep_leave(const char *path, err_t *err);

/* Is [entry] of [directory] a remainder? */
bool hdf5io_sweep_takes(const char *directory, const hdf5io_entry_t *entry);

#endif
