/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_files: writes the HDF5 files of a checkpoint: shards, each by one
 * rank or by several, or one shared file by MPI-IO, and the file of virtual
 * datasets that shows each whole tensor. HDF5 makes shards and the view in
 * memory (checkpoint_header.h). What a call has written is durable when it
 * returns.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_FILES_H
#define CDDP_HDF5IO_CHECKPOINT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_details.h"
#include "hdf5io/checkpoint_header.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_share.h"

typedef struct hdf5io_files {
    const hdf5io_io_t *io;
    const char *directory; /* the temporary directory */
    const hdf5io_tensor_t *tensors;
    const hdf5io_share_t *share; /* of this rank; unused with MPI-IO */
    hdf5io_manifest_t *manifest;
    const hdf5io_details_t *details; /* unused with MPI-IO */
    int rank;
    bool disk;     /* files are read back past the page cache, too */
    int64_t bytes; /* written by this rank */
    /* Headers of the file of which this rank is the head, after
     * hdf5io_files_head */
    hdf5io_header_t header;
} hdf5io_files_t;

/* If this rank is the head of a file: make its headers, create the file,
 * reserve its space, and enter its size and the offsets of its pieces into the
 * manifest. hdf5io_header_close must follow for [header]. Local. */
err_code_t hdf5io_files_head(hdf5io_files_t *files, err_t *err);

/* Write this rank's part of its file, durably. All offsets are known. If this
 * rank writes the file alone, its hashes are entered into the manifest. Local.
 */
err_code_t hdf5io_files_shard(hdf5io_files_t *files, err_t *err);

/* If this rank writes a file with other ranks: enter the hashes of its blocks
 * (hdf5io_details_blocks). All these ranks have written their parts. Local. */
err_code_t hdf5io_files_sums(hdf5io_files_t *files, err_t *err);

/* Write this rank's share of shared.h5 and enter all offsets. Collective over
 * MPI: a rank goes through all collective calls even if its own part fails. The
 * data is durable; hdf5io_files_hash must follow to enter size and hash. */
err_code_t hdf5io_files_shared(hdf5io_files_t *files, h5mpi_t *mpi, err_t *err);

/* Write checkpoint.h5. Local, on rank 0, once all offsets are known. */
err_code_t hdf5io_files_view(hdf5io_files_t *files, err_t *err);

/* Write file number [file], whose bytes are all in [header], and enter its size
 * and hashes. ERR_IO, also if [disk] is true and storage then gives other
 * bytes. Local. */
err_code_t hdf5io_files_write(hdf5io_files_t *files, int file,
                              const hdf5io_header_t *header, err_t *err);

/* Enter size and hashes of file number [file], read back from storage. ERR_IO
 * if [disk] is true and storage then gives other bytes. Local. */
err_code_t hdf5io_files_hash(hdf5io_files_t *files, int file, err_t *err);

/* After a failure: truncate the file [path], which HDF5 wrote to storage. HDF5
 * keeps a file open if it could not close it. Without this call, the open file
 * would keep its space even after it is removed. */
void hdf5io_files_empty(const char *path);

/* Path of file number [file]. The caller frees it. */
char *hdf5io_files_path(const hdf5io_files_t *files, int file);

/* Creation properties of a dataset that is allocated when it is created,
 * without fill values. HDF5 lock held; negative on failure. */
hid_t hdf5io_files_layout(void);

/* Create the file [path], which must not exist, with the access list [access]
 * (negative: fail). HDF5 lock held; negative on failure. */
hid_t hdf5io_files_create(const char *path, hid_t access);

/* Close [file] (if not negative) and return [rc], or the error of the close if
 * [rc] is ERR_OK. HDF5 lock held. */
err_code_t hdf5io_files_close(hid_t file, const char *path, err_code_t rc,
                              err_t *err);

/* Create the dataset /NAME and its groups. The caller closes it. HDF5 lock
 * held; negative on failure. */
hid_t hdf5io_files_dataset(hid_t file, const char *name, hid_t space,
                           hid_t layout);

/* Byte offset of the data of [dataset] in its file; ERR_IO if no storage is
 * allocated. HDF5 lock held. */
err_code_t hdf5io_files_locate(hid_t dataset, const char *path,
                               const char *name, int64_t *offset, err_t *err);

#endif
