/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files chunks*.c. */
#ifndef CDDP_HDF5IO_CHUNKS_PRIV_H
#define CDDP_HDF5IO_CHUNKS_PRIV_H

#include "hdf5io/chunks.h"
#include "hdf5io/filter.h"

/* Rows of fewer bytes are copied from a chunk in the pool. */
#define CHUNK_ROW_LEAST ((size_t)4096)

/* Where a chunk is stored. */
typedef struct chunk_place {
    uint64_t at;    /* byte of the file */
    uint32_t bytes; /* as stored */
    uint32_t mask;  /* bit i: filter i was not applied */
} chunk_place_t;

struct hdf5io_chunks {
    int users; /* columns */
    hdf5io_pool_t *pool;
    uint64_t owner; /* in the pool */
    bool forgets;   /* the close frees the chunks in the pool */
    const char *file, *path;
    int ndim;
    hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    hsize_t grid[H5S_MAX_RANK]; /* number of chunks in each dimension */
    size_t number_bytes;
    size_t bytes; /* of a decoded chunk */
    /* Bytes of a row, if chunks hold whole rows and are stored without filters,
     * so that rows can be read by themselves; else 0. */
    size_t row_bytes;
    filter_pipe_t pipe;
    uint64_t count;        /* of chunks */
    chunk_place_t *places; /* [count]; NULL: HDF5 reads the stored bytes */
};

/* Can HDF5 list so many chunks in a short time? */
bool hdf5io_chunks_listable(uint64_t count);
/* Fill chunks->places. False: a chunk is not where it can be read. Lock
 * held. */
bool hdf5io_chunks_list(hdf5io_chunks_t *chunks, hid_t dataset);

/* The chunks that a block touches, as a box in the grid of chunks. */
typedef struct chunks_box {
    hsize_t first[H5S_MAX_RANK], last[H5S_MAX_RANK];
} chunks_box_t;

/* False: the block has no numbers. */
bool hdf5io_chunks_box(const hdf5io_chunks_t *chunks,
                       const chunks_block_t *block, chunks_box_t *out);
/* [grid] becomes the next chunk of the box; false: there is none. The first one
 * is box->first. */
bool hdf5io_chunks_next(const hdf5io_chunks_t *chunks, const chunks_box_t *box,
                        hsize_t *grid);
/* The number of the chunk at [grid]. */
uint64_t hdf5io_chunks_number(const hdf5io_chunks_t *chunks,
                              const hsize_t *grid);
/* Are the rows of [block] read without the pool? */
bool hdf5io_chunks_plain(const hdf5io_chunks_t *chunks,
                         const chunks_block_t *block);

/* Read the stored bytes of chunk [number], at [grid] in the grid of chunks, and
 * decode them into [extent], which the calling thread fills, and which has
 * hdf5io_filter_room(chunks->bytes). Errors as for hdf5io_chunks_read. */
err_code_t hdf5io_chunks_fill(const hdf5io_chunks_t *chunks,
                              const chunks_from_t *from, uint64_t number,
                              const hsize_t *grid, pool_extent_t *extent,
                              err_t *err);

#endif
