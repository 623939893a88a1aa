/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* shard: one file of a dataset. */
#ifndef CDDP_HDF5IO_SHARD_H
#define CDDP_HDF5IO_SHARD_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/opt.h"
#include "hdf5io/catalogue.h"
#include "hdf5io/column.h"

#define SHARD_COLUMNS_MAX CATALOGUE_FIELDS_MAX

typedef struct hdf5io_shard {
    const char *path; /* not owned */
    uint64_t bytes;
    /* Known when it was opened by hdf5io_shard_open or hdf5io_shard_look: */
    int64_t changed;        /* its last change (mtime), in nanoseconds */
    uint64_t device, inode; /* identity of the file on this host */
    uint64_t place;         /* hash of the identities of the file and of the
                               files that links lead to */
    int64_t rows;
    int64_t first; /* global index of its first sample */
    int fd;        /* for pread of located columns, else -1 */
    hid_t file;    /* for columns that are not located, else H5I_INVALID_HID */
    hid_t joined;  /* opened by MPI-IO for collective columns, else
                      H5I_INVALID_HID */
    hdf5io_column_t *columns; /* [count], owned; NULL while it is closed */
    int count;
    int shape;     /* see hdf5io_dataset_columns */
    size_t cached; /* maximum bytes of its chunk caches, and of what is known
                      about chunks */
    bool crowded;  /* almost no descriptor was left under the hard limit when it
                      was opened */
    /* Used by dataset_use.c, under the dataset's lock: */
    bool open;     /* false: its files are closed */
    bool copied;   /* what is open is its copy, see dataset_stage.h */
    bool copy_bad; /* its copy is not to be used */
    char *copy;    /* if HDF5 opened the copy: its name, owned; else NULL */
    int readers;   /* tries to read it that are in progress, without the waits
                      between tries; the shard stays open for them */
    /* Neighbours among the open shards, which are in the order of their last
     * use; NULL at the ends. */
    struct hdf5io_shard *older, *newer;
} hdf5io_shard_t;

/* How to open the shards of a dataset. */
typedef struct hdf5io_shard_config {
    /* of its datasets; must outlive the shards */
    const char *paths[SHARD_COLUMNS_MAX];
    int count;
    hid_t access;        /* file-access list; not MPI-IO */
    bool collective;     /* MPI-IO: hdf5io_shard_join will follow */
    size_t cache_bytes;  /* chunk cache of each column */
    hdf5io_pool_t *pool; /* see column_how_t */
    int64_t sequence;    /* not 0: both columns are one stream, see dataset.h */
    bool whole;          /* each column is one sample */
} hdf5io_shard_config_t;

/* A closed shard of which nothing is known. */
void hdf5io_shard_init(hdf5io_shard_t *shard);

/* Open the file [path], a name that outlives the shard, and its columns. Its
 * decoded chunks belong to the [config->count] owners in the pool from [owner]
 * on, one for each column. They stay in the pool when the shard is closed.
 * ERR_DATA: not HDF5, truncated, an unsuitable column, or columns with
 * different numbers of samples. ERR_UNAVAILABLE: too many open files, although
 * the soft limit was raised to the hard one. ERR_IO. If a system call failed,
 * errno holds the reason. */
err_code_t hdf5io_shard_open(const hdf5io_shard_config_t *config,
                             const char *path, uint64_t owner,
                             hdf5io_shard_t *out, err_t *err);

/* The same with only one call of open, where possible; for the first time. */
err_code_t hdf5io_shard_look(const hdf5io_shard_config_t *config,
                             const char *path, uint64_t owner,
                             hdf5io_shard_t *out, err_t *err);

/* Open the file shard->path as a plain file, and set what the system says of
 * it: fd, bytes, changed, device, inode and crowded. Errors as for
 * hdf5io_shard_open; the caller closes the descriptor. */
err_code_t hdf5io_shard_plain(hdf5io_shard_t *shard, err_t *err);

/* Open the file again with the MPI-IO list [access], for the collective
 * columns. Collective: call it only after all ranks have opened the shard with
 * the same collective columns. */
err_code_t hdf5io_shard_join(hid_t access, hdf5io_shard_t *shard, err_t *err);

/* Close all files of [shard] and free its columns. */
void hdf5io_shard_rest(hdf5io_shard_t *shard);
/* Reopen a closed shard: take the open files, and the size of the caches, of
 * [from], the same shard opened again. */
void hdf5io_shard_adopt(hdf5io_shard_t *shard, hdf5io_shard_t *from);

/* The digest of a sample of the numbers of column [field] of an open shard, one
 * of [shards], see digest.h. ERR_IO (errno: the reason), ERR_DATA. */
err_code_t hdf5io_shard_digest(const hdf5io_shard_t *shard, int field,
                               int shards, uint64_t *out, err_t *err);

/* The facts of the open shard [shard] for a catalogue; out->columns becomes
 * [columns], an array of at least shard->count. */
void hdf5io_shard_facts(const hdf5io_shard_t *shard,
                        catalogue_column_t *columns, catalogue_facts_t *out);
/* Fill [config->count] closed columns from the facts of a shard called
 * [path]. */
void hdf5io_shard_columns_fill(const hdf5io_shard_config_t *config,
                               const char *path, const catalogue_facts_t *facts,
                               hdf5io_column_t *columns);

/* Is the file of [status] the one that [facts] describe, unchanged? */
bool hdf5io_shard_unchanged(const struct stat *status,
                            const catalogue_facts_t *facts);
/* The place of a shard of [count] columns without links, see hdf5io_shard_t. */
uint64_t hdf5io_shard_place(uint64_t device, uint64_t inode, int count);

/* Allocate [count] closed columns. ERR_MEMORY. */
err_code_t hdf5io_shard_columns_make(hdf5io_shard_t *shard, int count,
                                     err_t *err);

/* Open the closed shard again without HDF5: possible if all its bytes are at
 * known offsets of this very file, and the file is still that of [facts].
 * [copy] >= 0: take this descriptor of a copy, and do not open the file itself.
 * False: it stays closed, and hdf5io_shard_open must be called, which also
 * gives the error, if there is one; [copy] stays the caller's. */
bool hdf5io_shard_reopen(const hdf5io_shard_config_t *config,
                         const catalogue_facts_t *facts, int copy,
                         hdf5io_shard_t *shard);

/* Check the file [path] without HDF5 and get its size. Errors as for
 * hdf5io_shard_open. */
err_code_t hdf5io_shard_probe(const char *path, uint64_t *bytes, err_t *err);

/* Expand [texts] (glob patterns and files) to file names, each once, in the
 * order of strverscmp (part-10 follows part-9). ERR_DATA when a pattern matches
 * nothing. hdf5io_shard_paths_free frees the list. */
err_code_t hdf5io_shard_paths(const opt_texts_t *texts, char ***paths,
                              int *count, err_t *err);
void hdf5io_shard_paths_free(char **paths, int count);

#endif
