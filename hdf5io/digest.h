/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * digest: hashes of what a dataset holds, from which two ranks, or two lives of
 * a run, see that they have the same samples. They depend on the stored numbers
 * alone: not on names, dates or the layout of the files, so a copy has the
 * hashes of its original, compressed or not.
 *
 * Thread rule: as for reading, any thread. All calls are local, with MPI-IO,
 * too.
 */
#ifndef CDDP_HDF5IO_DIGEST_H
#define CDDP_HDF5IO_DIGEST_H

#include "hdf5io/dataset.h"

/* Called now and then during a long digest with the [bytes] bytes read since
 * the last call. */
typedef void (*hdf5io_digest_alive_t)(void *context, int64_t bytes);

/* Which bytes to look at, and whom to tell. */
typedef struct hdf5io_digest_how {
    bool full;                   /* all bytes; else a sample of them */
    hdf5io_digest_alive_t alive; /* (optional) */
    void *context;
} hdf5io_digest_how_t;

/* Samples of shard number [shard]. */
int64_t hdf5io_dataset_shard_samples(const hdf5io_dataset_t *dataset,
                                     int shard);

/* Path of field number [field] in its files; targets follow inputs. */
const char *hdf5io_dataset_field_path(const hdf5io_dataset_t *dataset,
                                      int field);

/* Stored bytes of one sample of it. */
size_t hdf5io_dataset_row_bytes(const hdf5io_dataset_t *dataset, int field);

/* A hash of which files the shards are, and those that links lead to (device
 * and inode): equal in two ranks of one host if both look at the same files. */
uint64_t hdf5io_dataset_place(const hdf5io_dataset_t *dataset);

/* A hash of the number of samples in shard number [shard], and of the shape and
 * stored type of each field. */
uint64_t hdf5io_dataset_shape(const hdf5io_dataset_t *dataset, int shard);

/*
 * A hash of the stored numbers of [field] in shard number [shard]. The sample
 * is 4 to 16 pieces (more where there are few shards) of at most 4 KiB at
 * positions that hang on the shape alone; of a dataset in chunks only those are
 * read that a piece lies in. Of a stream (data.sequence) the target is the
 * input but for its last number, so only its sample is looked at. Blocks.
 * ERR_IO or ERR_DATA when a file cannot be read, ERR_MEMORY.
 */
err_code_t hdf5io_dataset_digest(hdf5io_dataset_t *dataset, int shard,
                                 int field, const hdf5io_digest_how_t *how,
                                 uint64_t *out, err_t *err);

#endif
