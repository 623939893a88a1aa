/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_repair: intact debris and intact superseded checkpoints become
 * published checkpoints again. Calls are local.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_REPAIR_H
#define CDDP_HDF5IO_CHECKPOINT_REPAIR_H

#include "base/err.h"
#include "hdf5io/checkpoint_dir.h"

/* Can [entry] of [directory], which is not published, become the checkpoint of
 * its step? All its bytes are read. ERR_DATA: no; says what is damaged, or that
 * there is a checkpoint of this step. ERR_CONFIG: a later version of cddp wrote
 * it, so this version cannot tell. ERR_IO: it could not be read. */
err_code_t hdf5io_repair_check(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err);

/* After hdf5io_repair_check succeeded: rename [entry] to step-N, durably. The
 * caller holds the lock of the run directory; the check needs no lock.
 * ERR_DATA: since the check a checkpoint of this step was published. ERR_IO. */
err_code_t hdf5io_repair_adopt(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err);

#endif
