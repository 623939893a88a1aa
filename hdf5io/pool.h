/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * pool: buffers for chunks of all shards and columns of a dataset, with one
 * bound. An extent is the buffer of one chunk. It is known by its owner (a
 * column) and its number among the chunks of the owner. Extents that nobody
 * uses stay in the pool until their memory is needed: first those that were
 * read completely, then the least recently used ones.
 *
 * Thread rule: several threads may use a pool. While a thread fills an extent,
 * others that want the same extent wait.
 */
#ifndef CDDP_HDF5IO_POOL_H
#define CDDP_HDF5IO_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_pool hdf5io_pool_t;

typedef struct pool_extent pool_extent_t;

/* Owner of buffers that nobody finds again. */
#define POOL_NOBODY 0

/* A pool that keeps at most [bytes]; beyond that only extents in use. */
err_code_t hdf5io_pool_open(size_t bytes, hdf5io_pool_t **out, err_t *err);
void hdf5io_pool_close(hdf5io_pool_t *pool); /* NULL allowed */

/* The bound becomes at least [bytes]. */
void hdf5io_pool_allow(hdf5io_pool_t *pool, size_t bytes);

/* A new number for an owner, not POOL_NOBODY. hdf5io_pool_owners makes [count]
 * consecutive ones and returns the first. */
uint64_t hdf5io_pool_owner(hdf5io_pool_t *pool);
uint64_t hdf5io_pool_owners(hdf5io_pool_t *pool, uint64_t count);
/* Free all extents of an owner. Nobody uses them. */
void hdf5io_pool_forget(hdf5io_pool_t *pool, uint64_t owner);

/* Take extent [number] of [owner], with room for [bytes], until it is given
 * back. Blocks while another thread fills it. If it is *fill, the caller must
 * fill it and call hdf5io_pool_filled. An extent of POOL_NOBODY is always a new
 * one. ERR_MEMORY. */
err_code_t hdf5io_pool_take(hdf5io_pool_t *pool, uint64_t owner,
                            uint64_t number, size_t bytes, pool_extent_t **out,
                            bool *fill, err_t *err);
/* The extent is filled, or that failed: then another thread may try, and this
 * one must give it back. */
void hdf5io_pool_filled(hdf5io_pool_t *pool, pool_extent_t *extent, bool good);
/* Give back an extent, of which [used] more bytes were used. If [all] bytes
 * were used by now, it is of no more use. */
void hdf5io_pool_give(hdf5io_pool_t *pool, pool_extent_t *extent, size_t used,
                      size_t all);

/* Exchange the memory of two extents of the same size that the calling thread
 * fills. */
void hdf5io_pool_exchange(pool_extent_t *a, pool_extent_t *b);

/* The memory of an extent. */
unsigned char *hdf5io_pool_bytes(pool_extent_t *extent);

/* Count [bytes] stored bytes that were read for extents, and [seconds] in which
 * they were decoded; and get the sums of all calls. */
void hdf5io_pool_count(hdf5io_pool_t *pool, size_t bytes, double seconds);
void hdf5io_pool_counts(hdf5io_pool_t *pool, int64_t *bytes, double *seconds);

/* Bytes that the pool holds now, and its bound. */
size_t hdf5io_pool_held(hdf5io_pool_t *pool);
size_t hdf5io_pool_bound(hdf5io_pool_t *pool);

#endif
