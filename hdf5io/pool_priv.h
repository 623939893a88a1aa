/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files pool*.c: a table of extents, and lists of the extents
 * that nobody uses. The lock is held in all calls. */
#ifndef CDDP_HDF5IO_POOL_PRIV_H
#define CDDP_HDF5IO_POOL_PRIV_H

#include <pthread.h>

#include "hdf5io/pool.h"

/* A list of extents that nobody uses. */
typedef struct pool_list {
    pool_extent_t *oldest, *newest; /* its ends */
} pool_list_t;

struct pool_extent {
    uint64_t owner, number;
    uint64_t until; /* the last batch that is known to need it; 0: none */
    unsigned char *bytes;
    size_t room; /* of [bytes] */
    size_t used; /* bytes that were used since the extent was filled, or since
                    all of its bytes were used */
    int users;
    bool spent;           /* all bytes were used */
    bool kept;            /* its memory is taken last */
    bool ready;           /* filled */
    bool filling;         /* a thread fills it */
    pool_extent_t *chain; /* next in its bucket */
    pool_list_t *list;    /* that contains it; NULL: it is in use */
    /* Neighbours in the list; NULL at the ends. */
    pool_extent_t *older, *newer;
};

struct hdf5io_pool {
    pthread_mutex_t lock;   /* protects all members */
    pthread_cond_t changed; /* an extent was filled, or that failed */
    size_t bound, held;
    size_t lent;     /* bytes of extents in use that have no owner */
    size_t filling;  /* bytes of extents with an owner that threads fill */
    int64_t counted; /* bytes, see hdf5io_pool_count */
    double seconds;
    uint64_t owners;         /* numbers that were given out */
    pool_extent_t **buckets; /* [bucket_count], a power of two */
    size_t bucket_count, count;
    pool_list_t kept;
    pool_list_t unneeded;           /* extents that no batch is known to need */
    size_t idle;                    /* bytes of [unneeded] */
    pool_list_t needed[POOL_AHEAD]; /* an extent that batch b is the last to
                                       need is in list b modulo POOL_AHEAD */
    uint64_t batch;                 /* the first one that is not done */
    uint64_t last;                  /* the lists of later batches are empty */
};

/* Find an extent in the table. NULL: it is not there. */
pool_extent_t *hdf5io_pool_find(const hdf5io_pool_t *pool, uint64_t owner,
                                uint64_t number);
/* Add an extent to the table, and remove it. */
void hdf5io_pool_table_add(hdf5io_pool_t *pool, pool_extent_t *extent);
void hdf5io_pool_table_remove(hdf5io_pool_t *pool, pool_extent_t *extent);

/* Add an extent that nobody uses to its list, and remove it. */
void hdf5io_pool_unused_add(hdf5io_pool_t *pool, pool_extent_t *extent);
void hdf5io_pool_unused_remove(hdf5io_pool_t *pool, pool_extent_t *extent);
/* The unused extent whose memory is taken first; NULL: all are in use. */
pool_extent_t *hdf5io_pool_unused_first(hdf5io_pool_t *pool);

#endif
