/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * chunks: reads a chunked dataset without HDF5's lock. It knows where the
 * chunks are, reads them by pread, and decodes them (filter.h) into a pool. If
 * there are too many chunks to ask an old HDF5 for their places, HDF5 reads the
 * stored bytes, under the lock, and only decoding happens outside of it. Rows
 * of chunks without filters are read directly into the output.
 *
 * Thread rule: several threads may read.
 */
#ifndef CDDP_HDF5IO_CHUNKS_H
#define CDDP_HDF5IO_CHUNKS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/pool.h"
#include "hdf5io/slow.h"
#include "hdf5io/way.h"

typedef struct hdf5io_chunks hdf5io_chunks_t;

/* A chunked dataset. */
typedef struct chunks_source {
    hid_t dataset, create; /* open, and its creation list */
    const char *file;      /* that holds the bytes; must outlive the chunks */
    const char *path;      /* of the dataset; must outlive the chunks */
    int ndim;
    const hsize_t *dims; /* [ndim], of the dataset */
    size_t number_bytes; /* of one number, as stored */
    int fd;              /* the open file; used by the call only */
    hdf5io_pool_t *pool; /* must outlive the chunks */
    /* Owner of the chunks in the pool. The chunks stay there after the close.
     * POOL_NOBODY: the chunks get a new owner, and the close frees them. */
    uint64_t owner;
} chunks_source_t;

/* Find the chunks of a chunked dataset. *out is NULL if only HDF5 can read
 * them: other filters, chunks without storage, or very large ones. *way: how
 * they are read. ERR_MEMORY, ERR_IO. Lock held. */
err_code_t hdf5io_chunks_open(const chunks_source_t *source,
                              hdf5io_chunks_t **out, hdf5io_way_t *way,
                              err_t *err);
/* One more user, which also closes it. */
void hdf5io_chunks_share(hdf5io_chunks_t *chunks);
void hdf5io_chunks_close(hdf5io_chunks_t *chunks); /* NULL allowed */

/* Must the dataset stay open for reads? */
bool hdf5io_chunks_through_h5(const hdf5io_chunks_t *chunks);
/* Bytes of what is known about the chunks; and bytes that the pool should have
 * to keep a row of chunks while its samples are read in any order. */
size_t hdf5io_chunks_bytes(const hdf5io_chunks_t *chunks);
size_t hdf5io_chunks_wish(const hdf5io_chunks_t *chunks);

/* *at becomes the byte of the file at which row [row] begins. False: rows of
 * this dataset are not read by themselves. */
bool hdf5io_chunks_place(const hdf5io_chunks_t *chunks, hsize_t row,
                         uint64_t *at);

/* A block of numbers of the dataset: [count] from [start] on in each
 * dimension. */
typedef struct chunks_block {
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
} chunks_block_t;

/* Where to read from: the open file, and the open dataset if reads go through
 * HDF5. */
typedef struct chunks_from {
    int fd;
    hid_t dataset;
    slow_t *slow; /* where a slow read is noted (slow.h); NULL: nowhere */
} chunks_from_t;

/* Read [block] into [out], as stored. Takes the lock itself, if it needs it.
 * ERR_IO (errno: the reason); ERR_DATA names file, dataset and row. */
err_code_t hdf5io_chunks_read(hdf5io_chunks_t *chunks,
                              const chunks_from_t *from,
                              const chunks_block_t *block, void *out,
                              err_t *err);

/* Read those chunks of [block] into the pool that are not there yet, since
 * [batch] needs them (hdf5io_pool_want). A chunk that cannot be read is
 * skipped: hdf5io_chunks_read gives the error. Rows that are read without the
 * pool are skipped, too. False: the pool has no room for some chunk. */
bool hdf5io_chunks_ahead(hdf5io_chunks_t *chunks, const chunks_from_t *from,
                         const chunks_block_t *block, uint64_t batch);
/* Tell the system that the chunks of [block] that are not in the pool will be
 * read soon from [fd]. */
void hdf5io_chunks_tell(const hdf5io_chunks_t *chunks, int fd,
                        const chunks_block_t *block);

#endif
