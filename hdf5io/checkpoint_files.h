/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_files: the HDF5 files of a checkpoint that is being written: one
 * shard per writer, or one shared file by MPI-IO, and the view that shows every
 * tensor whole. Every call ends with the files durable and enters what it
 * learned (offsets, sizes, hashes) into the manifest.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_FILES_H
#define CDDP_HDF5IO_CHECKPOINT_FILES_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"

typedef struct hdf5io_files {
    const hdf5io_io_t *io;
    const char *directory; /* the temporary one */
    const hdf5io_tensor_t *tensors;
    hdf5io_manifest_t *manifest;
    int rank;
    int64_t bytes; /* written by this rank so far */
} hdf5io_files_t;

/* Write this rank's shard, if it has one: offsets of its pieces, size and hash
 * of its file. Local. */
err_code_t hdf5io_files_shard(hdf5io_files_t *files, err_t *err);

/* Write this rank's share of shared.h5: all offsets. Collective over MPI; every
 * rank goes through all collective calls even if its own part fails. Durable,
 * but its size and hash wait for hdf5io_files_hash. */
err_code_t hdf5io_files_shared(hdf5io_files_t *files, h5mpi_t *mpi, err_t *err);

/* Write checkpoint.h5. Local, rank 0, once all offsets are known. */
err_code_t hdf5io_files_view(hdf5io_files_t *files, err_t *err);

/* Take size and hash of file number [file], as it now reads. Local. */
err_code_t hdf5io_files_hash(hdf5io_files_t *files, int file, err_t *err);

/* Path of file number [file]; free() it. */
char *hdf5io_files_path(const hdf5io_files_t *files, int file);

/* Properties of a dataset that is allocated at once and never filled. HDF5 lock
 * held; negative on failure. */
hid_t hdf5io_files_layout(void);

/* Create the dataset /NAME with its groups; the caller closes. HDF5 lock held;
 * negative on failure. */
hid_t hdf5io_files_dataset(hid_t file, const char *name, hid_t space,
                           hid_t layout);

/* Where dataset's bytes lie in the file; ERR_IO if they have no place. HDF5
 * lock held. */
err_code_t hdf5io_files_locate(hid_t dataset, const char *path,
                               const char *name, int64_t *offset, err_t *err);

#endif
