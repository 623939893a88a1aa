/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Writes shards. A shard is an HDF5 file with a few datasets that have the same
 * number of rows. The same content gives the same bytes (no time stamps). */
#ifndef CDDP_CMD_DATA_SHARD_H
#define CDDP_CMD_DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { CMD_SHARD_DIMS_MAX = 4 };

typedef enum cmd_shard_type {
    CMD_SHARD_INT8,
    CMD_SHARD_UINT8,
    CMD_SHARD_FLOAT32
} cmd_shard_type_t;

typedef struct cmd_shard_field {
    const char *name; /* "/spins" */
    cmd_shard_type_t type;
    int ndim; /* number of dimensions of one row */
    int64_t dims[CMD_SHARD_DIMS_MAX];
    const void *data; /* [rows, dims] */
} cmd_shard_field_t;

typedef struct cmd_shard {
    int64_t rows;
    const cmd_shard_field_t *fields;
    int field_count;
    bool seeded; /* true: write the root attribute "seed" */
    uint64_t seed;
    double bound; /* root attribute "bound_accuracy"; NAN: not written */
    const char *bound_by; /* root attribute "bound_name", if bound is written */
} cmd_shard_t;

/* Write [shard] to file [path]: under a temporary name first, then fsync and
 * rename, so that the file is complete or does not exist. ERR_IO names the
 * file. */
err_code_t cmd_shard_write(const char *path, const cmd_shard_t *shard,
                           err_t *err);

/* Prepare [directory] for a data set. Old shards train-*.h5 and valid-*.h5
 * would count as part of it, so remove them if [force]; otherwise ERR_USAGE if
 * there are any. */
err_code_t cmd_shards_begin(const char *directory, bool force, err_t *err);

/* The same for the shards [name]-*.h5 of a directory that exists. */
err_code_t cmd_shards_clear(const char *directory, const char *name, bool force,
                            err_t *err);

/* Write [content] as shard number [shard] of [split] ("train", "valid"); the
 * size of the file is added to *bytes (NULL allowed). */
err_code_t cmd_shards_put(const char *directory, const char *split, int shard,
                          const cmd_shard_t *content, int64_t *bytes,
                          err_t *err);

#endif
