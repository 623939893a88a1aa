/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * column: one HDF5 dataset of one shard, with samples along dimension 0. Its
 * properties are known once it is open. The way its rows are read is internal:
 * - located: the dataset is contiguous and allocated (or in one external raw
 *   file), so pread reads at a file offset, without the lock. The bytes may be
 *   in another file than the opened one, if a link leads there;
 * - chunks: pread of chunks and own decoders, without the lock (chunks.h);
 * - MPI-IO: a collective H5Dread by all ranks, for datasets that HDF5 can read
 *   collectively (see column_way.c);
 * - otherwise: H5Dread of the rows, under the lock, as stored (no conversion).
 */
#ifndef CDDP_HDF5IO_COLUMN_H
#define CDDP_HDF5IO_COLUMN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/chunks.h"
#include "hdf5io/convert.h"
#include "hdf5io/way.h"

/* A run of consecutive rows. */
typedef struct column_run {
    int64_t row, count;
} column_run_t;

typedef struct hdf5io_column {
    const char *file, *path; /* names used to open it; not owned */
    char *source; /* the file that holds the data if a link leads to another
                     file than [file]; else NULL */
    uint64_t device, inode; /* of [source], on this host; else 0 */
    int fd;    /* for pread in [source]; -1: use the shard's descriptor */
    int files; /* number of other files that hold sources of a virtual dataset;
                  HDF5 keeps them open once it has read from them */
    bool elsewhere; /* bytes are, or may be, in other files than [file] */
    int ndim;       /* dimensions of one sample */
    hsize_t dims[H5S_MAX_RANK];
    int64_t rows;
    int64_t elems;    /* elements of one sample */
    size_t row_bytes; /* bytes of one sample as read, before conversion */
    size_t cached;    /* maximum bytes of its chunk cache, or of what is known
                         about its chunks */
    int64_t band;     /* rows in a row of chunks, at least 1; 0: no chunks */
    convert_type_t type;
    hdf5io_way_t way; /* how it is read */
    bool located;
    hdf5io_chunks_t *chunks; /* not NULL: how chunked data is read */
    bool collective;         /* read by all ranks together (MPI-IO) */
    uint64_t offset;         /* if located: of the first row in the file */
    uint64_t stored;         /* if it was opened and located: bytes of the
                                whole dataset in the file */
    hid_t dataset;           /* H5I_INVALID_HID if reads do without HDF5 */
    hid_t memory;            /* the memory type for H5Dread */
    int64_t stream; /* not 0: the dataset is a 1-D stream, and a row is this
                       many of its numbers */
    int64_t skip;   /* stream: index of the first number of row 0 */
    bool whole;     /* the only row is the whole dataset */
} hdf5io_column_t;

/* Settings for opening a column. */
typedef struct column_how {
    uint64_t file_bytes; /* size of the opened file */
    int fd;              /* the opened file */
    hdf5io_pool_t *pool; /* for chunks that are read without HDF5's lock; must
                            outlive the column; NULL: HDF5 reads all chunks */
    uint64_t owner;      /* in the pool, see chunks.h */
    bool mpi;            /* hdf5io_column_join will follow if possible */
    bool whole; /* hdf5io_column_unite will follow: a single value is allowed */
    size_t cache_bytes; /* for decoded chunks; at least one row of chunks is
                           cached */
} column_how_t;

/* Open the dataset [path] of the open HDF5 file [file] (called [name]) and
 * check it. ERR_DATA: the dataset does not exist (the sentence lists existing
 * ones and the nearest name), holds no numbers, has no sample dimension, ends
 * beyond the end of the file, or was written with a filter that is not
 * installed. Lock held. */
err_code_t hdf5io_column_open(hid_t file, const char *name, const char *path,
                              const column_how_t *how, hdf5io_column_t *out,
                              err_t *err);
/* Open the column again through [joined], the same file opened by MPI-IO, so
 * that all ranks read it together. Collective. Lock held. */
err_code_t hdf5io_column_join(hdf5io_column_t *column, hid_t joined,
                              err_t *err);

/* Is the column read without any open HDF5 handle? */
bool hdf5io_column_apart(const hdf5io_column_t *column);
/* If [other] is the same dataset of the same file, both use the same decoded
 * chunks from now on. */
void hdf5io_column_share(hdf5io_column_t *column, const hdf5io_column_t *other);

/* Close the HDF5 handles, which a column that is read apart does not need
 * (trim), or everything (close). Lock held. */
void hdf5io_column_trim(hdf5io_column_t *column);
void hdf5io_column_close(hdf5io_column_t *column);

/* Treat the 1-D column as a stream: row k is the numbers [k length + skip, (k +
 * 1) length + skip). The number of rows is that for skip = 1, so that after
 * each row with skip = 0 the next number exists. ERR_DATA: the column has more
 * dimensions. */
err_code_t hdf5io_column_cut(hdf5io_column_t *column, int64_t length,
                             int64_t skip, err_t *err);

/* Treat the whole column as one row. ERR_DATA: it has no numbers, or too many.
 */
err_code_t hdf5io_column_unite(hdf5io_column_t *column, err_t *err);

/* Selections for one H5Dread. */
typedef struct column_spaces {
    hid_t from, to; /* spaces in the file and in memory */
    int64_t row;    /* first row, for error sentences */
} column_spaces_t;

/* Read the selected elements into [out] and close both spaces, on failure too.
 * If a space is invalid (negative), nothing is read and the call fails. ERR_IO
 * or ERR_DATA (errno: the reason). Lock held. */
err_code_t hdf5io_column_read_space(const hdf5io_column_t *column,
                                    const column_spaces_t *spaces,
                                    hid_t transfer, void *out, err_t *err);

/* Rows to read. */
typedef struct column_rows {
    const column_run_t *runs; /* ascending, disjoint */
    int64_t count;            /* of runs */
    int fd;                   /* of the shard, for located columns */
    hid_t transfer; /* H5P_DEFAULT, or a collective transfer list: then all
                       ranks must call, some maybe with no runs */
    /* (optional) Run i goes to row slots[i] of the output; not with a
     * collective list. */
    const int64_t *slots;
    slow_t *slow; /* (optional) where a slow read is noted (slow.h) */
} column_rows_t;

/* Read [rows] into [out], one after the other unless they have slots. If
 * storage is slow, the system is told which runs follow. Columns that do not
 * need HDF5 are read from rows->fd, unless it has its own descriptor. Takes the
 * lock itself. ERR_IO (errno: the reason), or ERR_DATA for damaged data. */
err_code_t hdf5io_column_read(const hdf5io_column_t *column,
                              const column_rows_t *rows, void *out, err_t *err);

/* Read row [row] ahead for [batch]: its chunks, if they are decoded without
 * HDF5, are read from [from] into the pool, see hdf5io_chunks_ahead. False: the
 * pool is full. */
bool hdf5io_column_ahead(const hdf5io_column_t *column,
                         const column_rows_t *from, int64_t row,
                         uint64_t batch);
/* Tell the system that [run] will be read soon from [fd], if it is known where
 * its bytes are. Chunks that are in the pool are left out. */
void hdf5io_column_tell(const hdf5io_column_t *column, int fd,
                        const column_run_t *run);

/* Name of the file that holds the column's bytes. */
const char *hdf5io_column_source(const hdf5io_column_t *column);

/* Write the shape of one sample as "[32, 32]" to [out], which is returned. */
char *hdf5io_column_shape(const hdf5io_column_t *column, char *out,
                          size_t room);

#endif
