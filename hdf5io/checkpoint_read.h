/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_read: the local part of reading a checkpoint, which the commands
 * use as well. */
#ifndef CDDP_HDF5IO_CHECKPOINT_READ_H
#define CDDP_HDF5IO_CHECKPOINT_READ_H

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"

/* hdf5io_manifest_load that reads through [io]. *cause as below. */
err_code_t hdf5io_checkpoint_manifest(const hdf5io_io_t *io,
                                      const char *directory,
                                      hdf5io_manifest_t *out, uint64_t *hash,
                                      retry_cause_t *cause, err_t *err);

/* The text of [directory]/MANIFEST.json, to be freed. ERR_DATA, ERR_IO; *cause
 * as below. */
err_code_t hdf5io_checkpoint_text(const hdf5io_io_t *io, const char *directory,
                                  char **text, size_t *bytes,
                                  retry_cause_t *cause, err_t *err);

/* hdf5io_manifest_parse of this text; the error names the file. */
err_code_t hdf5io_checkpoint_parse(const char *directory, const char *text,
                                   size_t bytes, hdf5io_manifest_t *out,
                                   uint64_t *hash, err_t *err);

/* A checkpoint to read: its directory and its manifest. */
typedef struct hdf5io_saved {
    const hdf5io_io_t *io;
    const char *directory;
    const hdf5io_manifest_t *manifest;
} hdf5io_saved_t;

/* Elements [first, first + count) of tensor number [tensor], and the place to
 * read them to. */
typedef struct hdf5io_range {
    int tensor;
    int64_t first, count;
    float *data;
} hdf5io_range_t;

/* Read the whole tensor number [tensor] of a checked checkpoint into [data].
 * ERR_IO, ERR_DATA. */
err_code_t hdf5io_checkpoint_fetch(const hdf5io_saved_t *saved, int tensor,
                                   float *data, err_t *err);

/* Read the elements of [range]. Errors as above. */
err_code_t hdf5io_checkpoint_fetch_range(const hdf5io_saved_t *saved,
                                         const hdf5io_range_t *range,
                                         err_t *err);

#endif
