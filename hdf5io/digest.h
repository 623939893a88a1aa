/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * digest: hashes of the contents of a dataset. Two ranks, or a run and its
 * resume, compare them to check that they have the same samples. They depend
 * only on the stored numbers, not on names, dates or the storage layout, so a
 * copy has the hashes of its original, compressed or not.
 *
 * Thread rule: any thread, as for reading. All calls are local, also with
 * MPI-IO.
 */
#ifndef CDDP_HDF5IO_DIGEST_H
#define CDDP_HDF5IO_DIGEST_H

#include "hdf5io/dataset.h"

/* Called repeatedly during a long digest; [bytes] is the number of bytes read
 * since the last call. */
typedef void (*hdf5io_digest_alive_t)(void *context, int64_t bytes);

/* Which bytes to hash, and a callback for progress. */
typedef struct hdf5io_digest_how {
    bool full;                   /* hash all bytes; else a sample of them */
    hdf5io_digest_alive_t alive; /* (optional) */
    void *context;
} hdf5io_digest_how_t;

/* Samples of shard number [shard]. */
int64_t hdf5io_dataset_shard_samples(const hdf5io_dataset_t *dataset,
                                     int shard);

/* Dataset path of field number [field] in its files; inputs come first, then
 * targets. */
const char *hdf5io_dataset_field_path(const hdf5io_dataset_t *dataset,
                                      int field);

/* Stored bytes of one sample of field number [field]. */
size_t hdf5io_dataset_row_bytes(const hdf5io_dataset_t *dataset, int field);

/* A hash of the identities (device and inode) of the shard files and of the
 * files that links lead to. Equal on two ranks of one host if both use the same
 * files. */
uint64_t hdf5io_dataset_place(const hdf5io_dataset_t *dataset);

/* A hash of the number of samples in shard number [shard] and of the shape and
 * stored type of each field. */
uint64_t hdf5io_dataset_shape(const hdf5io_dataset_t *dataset, int shard);

/*
 * A hash of the stored numbers of [field] in shard number [shard]. If how->full
 * is false, it covers 4 to 16 pieces (more where there are few shards) of at
 * most 4 KiB, at positions that depend only on the shape; of a chunked dataset
 * only chunks that hold a piece are read. For a stream (data.sequence) the
 * target is the input shifted by one number, so the target is never hashed in
 * full. Blocks. ERR_IO or ERR_DATA when a file cannot be read, ERR_MEMORY.
 */
err_code_t hdf5io_dataset_digest(hdf5io_dataset_t *dataset, int shard,
                                 int field, const hdf5io_digest_how_t *how,
                                 uint64_t *out, err_t *err);

#endif
