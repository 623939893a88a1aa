/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_read: the local parts of reading, for the commands as well. */
#ifndef CDDP_HDF5IO_CHECKPOINT_READ_H
#define CDDP_HDF5IO_CHECKPOINT_READ_H

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"

/* hdf5io_manifest_load through [io]; *cause as below. */
err_code_t hdf5io_checkpoint_manifest(const hdf5io_io_t *io,
                                      const char *directory,
                                      hdf5io_manifest_t *out, uint64_t *hash,
                                      retry_cause_t *cause, err_t *err);

/* Compare size and hash of file number [file] in [directory] with the manifest:
 * ERR_DATA says whether it is missing, cut off or changed; *cause (see
 * retry_run) tells that damage from what cannot be read. */
err_code_t hdf5io_checkpoint_check(const hdf5io_io_t *io, const char *directory,
                                   const hdf5io_manifest_t *manifest, int file,
                                   retry_cause_t *cause, err_t *err);

/* Read tensor number [tensor] whole into [data], from a checkpoint that was
 * checked. ERR_IO, ERR_DATA. */
err_code_t hdf5io_checkpoint_fetch(const hdf5io_io_t *io, const char *directory,
                                   const hdf5io_manifest_t *manifest,
                                   int tensor, float *data, err_t *err);

/* Read elements [first, first + count) of it into [data], in the same way. */
err_code_t hdf5io_checkpoint_fetch_run(const hdf5io_io_t *io,
                                       const char *directory,
                                       const hdf5io_manifest_t *manifest,
                                       int tensor, int64_t first, int64_t count,
                                       float *data, err_t *err);

#endif
