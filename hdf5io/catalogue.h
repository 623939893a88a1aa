/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * catalogue: what is known of the shards of a dataset without opening them.
 * Somebody opens a shard once and sets its facts here. Then the facts travel:
 * packed to bytes, sent to other ranks, and merged there into a catalogue of
 * the same files. Nothing in here opens a file.
 *
 * Most shards of a dataset have columns of the same type and shape. These are
 * stored once.
 *
 * Thread rule: one thread at a time.
 */
#ifndef CDDP_HDF5IO_CATALOGUE_H
#define CDDP_HDF5IO_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/convert.h"
#include "hdf5io/way.h"

typedef struct hdf5io_catalogue hdf5io_catalogue_t;

/* Maximum number of columns of a shard, and of dimensions of a sample. */
#define CATALOGUE_FIELDS_MAX 16
#define CATALOGUE_DIMS_MAX 32

/* Type and shape of a column; see column.h for the words. */
typedef struct catalogue_column {
    convert_type_t type;
    int ndim;
    uint64_t dims[CATALOGUE_DIMS_MAX]; /* [ndim], of one sample */
    int64_t stream;   /* not 0: the numbers of a sample of a stream */
    int64_t skip;     /* stream: index of the first number of row 0 */
    int64_t band;     /* rows in a row of chunks; 0: no chunks */
    int files;        /* other files that hold sources of a virtual dataset */
    hdf5io_way_t way; /* how it is read */
    bool located;
    bool linked; /* bytes are, or may be, in other files than the shard */
} catalogue_column_t;

/* Facts of a shard. */
typedef struct catalogue_facts {
    uint64_t bytes;  /* size of the file */
    int64_t changed; /* its last change (mtime), in nanoseconds */
    uint64_t inode;
    uint64_t place; /* hash of the identities of the file and of the files that
                       links lead to, on the host that opened it */
    int64_t rows;
    uint64_t cached;                   /* maximum bytes of its chunk caches */
    const catalogue_column_t *columns; /* [fields] */
    /* [fields], if located: of the first row in the file; else 0 */
    uint64_t offsets[CATALOGUE_FIELDS_MAX];
    bool digested; /* the next member is known */
    /* [fields], of a sample of the numbers; see digest.h */
    uint64_t digests[CATALOGUE_FIELDS_MAX];
} catalogue_facts_t;

/* A catalogue of [count] shards with the names [paths] (copied), each with
 * [fields] columns; no facts are known yet. ERR_MEMORY. */
err_code_t hdf5io_catalogue_open(char *const *paths, int count, int fields,
                                 hdf5io_catalogue_t **out, err_t *err);
void hdf5io_catalogue_close(hdf5io_catalogue_t *catalogue); /* NULL allowed */

/* Number of shards, and of columns of each. */
int hdf5io_catalogue_shards(const hdf5io_catalogue_t *catalogue);
int hdf5io_catalogue_fields(const hdf5io_catalogue_t *catalogue);
/* File name of shard [shard]; valid as long as the catalogue. */
const char *hdf5io_catalogue_path(const hdf5io_catalogue_t *catalogue,
                                  int shard);

/* Store the facts of a shard; what facts->columns points to is copied. ERR_DATA
 * if other facts were stored before: the file has changed since, or two ranks
 * see different files. ERR_MEMORY. */
err_code_t hdf5io_catalogue_set(hdf5io_catalogue_t *catalogue, int shard,
                                const catalogue_facts_t *facts, err_t *err);

/* Get the facts of a shard; false if they are not known. out->columns is valid
 * until the next change of the catalogue. */
bool hdf5io_catalogue_get(const hdf5io_catalogue_t *catalogue, int shard,
                          catalogue_facts_t *out);

/* The first shard without facts, or the number of shards if all are known. */
int hdf5io_catalogue_missing(const hdf5io_catalogue_t *catalogue);

/* Number of different shapes (columns) among the known shards; and the number
 * of the shape of a known shard, from 0 on. */
int hdf5io_catalogue_shapes(const hdf5io_catalogue_t *catalogue);
int hdf5io_catalogue_shape(const hdf5io_catalogue_t *catalogue, int shard);

/* Pack the facts of all known shards with the numbers first, first + step,
 * first + 2 step, ... to bytes, which do not depend on the byte order of the
 * machine. The caller frees them with mem_free. ERR_MEMORY. */
err_code_t hdf5io_catalogue_pack(const hdf5io_catalogue_t *catalogue, int first,
                                 int step, void **out, size_t *bytes,
                                 err_t *err);

/* Add packed facts of a catalogue with the same shards and columns. Any bytes
 * may be given. ERR_DATA: they are damaged or of another dataset, or contradict
 * known facts (see hdf5io_catalogue_set); some facts may have been added then.
 * ERR_MEMORY. */
err_code_t hdf5io_catalogue_merge(hdf5io_catalogue_t *catalogue,
                                  const void *packed, size_t bytes, err_t *err);

#endif
