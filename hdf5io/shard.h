/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* shard: one file of a dataset, and how shards are found. */
#ifndef CDDP_HDF5IO_SHARD_H
#define CDDP_HDF5IO_SHARD_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "hdf5io/column.h"

#define SHARD_COLUMNS_MAX 16

typedef struct hdf5io_shard {
    char *path;
    uint64_t bytes;
    uint64_t device, inode; /* which file it is on this host */
    int64_t rows;
    int64_t first;            /* global index of its first sample */
    int fd;                   /* for located columns, else -1 */
    hid_t file;               /* for other columns, else H5I_INVALID_HID */
    hid_t joined;             /* for collective columns, the same */
    hdf5io_column_t *columns; /* [count], owned */
    int count;
    size_t cached; /* bytes that its chunk caches may take */
    bool crowded;  /* when it was opened, the process had hardly a descriptor
                      left that the hard limit allows */
    /* Of dataset_use.c, under the dataset's lock: */
    bool open;     /* else what is needed for reading is closed */
    int readers;   /* it stays open for */
    uint64_t used; /* when last: a count */
} hdf5io_shard_t;

/* How to open the shards of a dataset. */
typedef struct hdf5io_shard_config {
    const char *paths[SHARD_COLUMNS_MAX]; /* of datasets; outlive the shards */
    int count;
    hid_t access;       /* file-access list; not MPI-IO */
    bool collective;    /* hdf5io_shard_join will follow */
    size_t cache_bytes; /* of decoded chunks, for each column */
    int64_t sequence;   /* not 0: two columns of one stream, see dataset.h */
} hdf5io_shard_config_t;

/* Open the file [path] and its columns: ERR_DATA (not HDF5, truncated, a
 * column that does not fit, different numbers of samples), ERR_UNAVAILABLE (too
 * many open files; the soft limit has been raised to the hard one), ERR_IO. If
 * a system call failed, errno says why. */
err_code_t hdf5io_shard_open(const hdf5io_shard_config_t *config,
                             const char *path, hdf5io_shard_t *out, err_t *err);
/* Open the file again with the MPI-IO list [access], for the columns that can
 * be read together. Collective: only once all ranks have opened the shard, with
 * the same columns to join. */
err_code_t hdf5io_shard_join(hid_t access, hdf5io_shard_t *shard, err_t *err);
void hdf5io_shard_close(hdf5io_shard_t *shard);

/* Close all files of [shard] and keep what is known of them. */
void hdf5io_shard_rest(hdf5io_shard_t *shard);
/* The way back: take the open files of [from], the same shard opened again. */
void hdf5io_shard_adopt(hdf5io_shard_t *shard, hdf5io_shard_t *from);

/* The sentence for the file [path] that could not be opened, from errno:
 * ERR_DATA, ERR_UNAVAILABLE (too many open files) or ERR_IO. */
err_code_t hdf5io_shard_descriptor_fail(const char *path, err_t *err);

/* What the file system says about the file [path], without HDF5: its size, or
 * the errors about files of hdf5io_shard_open. */
err_code_t hdf5io_shard_probe(const char *path, uint64_t *bytes, err_t *err);

/* Expand [texts] (globs and files) to file names, each once, in the order of
 * strverscmp (so that part-10 follows part-9). ERR_DATA when one of them
 * matches nothing. The caller frees with hdf5io_shard_paths_free. */
err_code_t hdf5io_shard_paths(const opt_texts_t *texts, char ***paths,
                              int *count, err_t *err);
void hdf5io_shard_paths_free(char **paths, int count);

#endif
