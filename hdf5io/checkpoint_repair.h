/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_repair: gives debris and superseded checkpoints that are intact
 * the name of a checkpoint. Calls are local.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_REPAIR_H
#define CDDP_HDF5IO_CHECKPOINT_REPAIR_H

#include "base/err.h"
#include "hdf5io/checkpoint_dir.h"

/* Can [entry] of [directory], which is not published, become the checkpoint of
 * its step? All its bytes are read. ERR_DATA: no; says what is damaged, or that
 * there is a checkpoint of this step. ERR_CONFIG: not by this version, as a
 * later one wrote it. ERR_IO: it could not be read. */
err_code_t hdf5io_repair_check(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err);

/* Rename [entry], for which the check was successful, durably. For a process
 * that has the lock of the run directory; it need not have had it for the
 * check. ERR_DATA: meanwhile there is a checkpoint of its step. ERR_IO. */
err_code_t hdf5io_repair_adopt(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err);

#endif
