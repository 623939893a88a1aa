/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * pool: buffers for chunks of all shards and columns of a dataset, with one
 * bound. An extent is the buffer of one chunk. It is known by its owner (a
 * column) and its number among the chunks of the owner. Extents that nobody
 * uses stay in the pool until their memory is needed. The pool first gives up
 * extents that no batch is known to need: those that were read completely, then
 * the least recently used ones. Then it gives up the extent that is needed
 * last. Extents that are to be kept (hdf5io_pool_keep) are given up at the very
 * end.
 *
 * hdf5io_pool_want tells the pool which extents a batch needs. Batches are
 * numbered from 1 in the order in which they are used. The numbers begin again
 * with each plan.
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
 * consecutive numbers and returns the first. */
uint64_t hdf5io_pool_owner(hdf5io_pool_t *pool);
uint64_t hdf5io_pool_owners(hdf5io_pool_t *pool, uint64_t count);
/* Free the extents of an owner that nobody uses. */
void hdf5io_pool_forget(hdf5io_pool_t *pool, uint64_t owner);

/* Take extent [number] of [owner], with room for [bytes], until it is given
 * back. Blocks while another thread fills it. If it is *fill, the caller must
 * fill it and call hdf5io_pool_filled. An extent of POOL_NOBODY is always a new
 * one. ERR_MEMORY. */
err_code_t hdf5io_pool_take(hdf5io_pool_t *pool, uint64_t owner,
                            uint64_t number, size_t bytes, pool_extent_t **out,
                            bool *fill, err_t *err);
/* How many batches after the first one that is not done may be planned. */
#define POOL_AHEAD 1024

/* A new plan: no batch is known to need anything. */
void hdf5io_pool_plan(hdf5io_pool_t *pool);
/* All batches before [batch] are done. */
void hdf5io_pool_plan_done(hdf5io_pool_t *pool, uint64_t batch);

typedef enum pool_want {
    POOL_HERE, /* it is in the pool, or another thread fills it */
    POOL_FILL, /* the caller must fill it, as after hdf5io_pool_take */
    POOL_FULL  /* there is no memory, unless an extent is given up that an
                  earlier batch needs; or the batch is too far ahead */
} pool_want_t;

/* Say that [batch] needs extent [number] of [owner], with room for [bytes].
 * *out is set only for POOL_FILL. For a batch that is done nothing happens:
 * POOL_HERE. Does not block. */
pool_want_t hdf5io_pool_want(hdf5io_pool_t *pool, uint64_t owner,
                             uint64_t number, size_t bytes, uint64_t batch,
                             pool_extent_t **out);

/* Is extent [number] of [owner] in the pool, or does a thread fill it? */
bool hdf5io_pool_has(hdf5io_pool_t *pool, uint64_t owner, uint64_t number);

/* The extent is filled, or that failed: then another thread may try, and this
 * one must give it back. */
void hdf5io_pool_filled(hdf5io_pool_t *pool, pool_extent_t *extent, bool good);
/* Give back an extent, of which [used] more bytes were used. If [all] bytes
 * were used by now, it is of no more use. */
void hdf5io_pool_give(hdf5io_pool_t *pool, pool_extent_t *extent, size_t used,
                      size_t all);

/* Keep an extent that the caller uses, even if no batch is known to need it. */
void hdf5io_pool_keep(hdf5io_pool_t *pool, pool_extent_t *extent);

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
