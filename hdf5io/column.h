/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * column: one HDF5 dataset of one shard, samples along dimension 0. What it
 * holds is known once it is open; how its rows are read is its own affair:
 * - located: contiguous and allocated, so pread at an offset, outside the lock,
 *   in the file that holds it: links may lead to another than the one opened;
 *   external raw storage in one file is located, too;
 * - otherwise: H5Dread of the rows, under the lock, as stored (no conversion);
 * - MPI-IO: the same, collective, by all ranks for every column, where HDF5 can
 *   do that; each rank by itself where it cannot (see column.c).
 */
#ifndef CDDP_HDF5IO_COLUMN_H
#define CDDP_HDF5IO_COLUMN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/convert.h"

/* A run of consecutive rows. */
typedef struct column_run {
    int64_t row, count;
} column_run_t;

typedef struct hdf5io_column {
    const char *file, *path; /* as they were opened; not owned */
    char *source; /* the file that holds it, if a link leads to another one than
                     [file]; else NULL */
    uint64_t device, inode; /* of that file, on this host */
    int fd;    /* located in another file than [file]: open; else -1 */
    int files; /* others that hold sources of a virtual dataset: HDF5 opens
                  them as it reads, and keeps them open */
    int ndim;  /* of one sample */
    hsize_t dims[H5S_MAX_RANK];
    int64_t rows;
    int64_t elems;    /* of one sample */
    size_t row_bytes; /* of one sample, as read_rows delivers it */
    size_t cached;    /* bytes that its chunk cache may take */
    convert_type_t type;
    bool located;
    bool collective; /* MPI-IO: read by all ranks together */
    uint64_t offset; /* located: in the file */
    hid_t dataset;   /* not located: open; else H5I_INVALID_HID */
    hid_t memory;    /* the type that H5Dread delivers */
    int64_t stream;  /* not 0: a row is so many numbers of a 1-D dataset, */
    int64_t skip;    /* the first of which begins here */
} hdf5io_column_t;

/* What a column has to know of its surroundings. */
typedef struct column_how {
    uint64_t file_bytes; /* of the file that is opened */
    bool mpi;            /* hdf5io_column_join will follow where it can */
    size_t cache_bytes;  /* of decoded chunks; one row's chunks at least */
} column_how_t;

/* Open the dataset [path] of the open HDF5 file [file] (called [name]) and
 * check what it is: ERR_DATA (absent: lists what is there and the nearest
 * name; no numbers; no sample dimension; beyond the end of the file),
 * ERR_UNAVAILABLE (a filter is not installed). Lock held. */
err_code_t hdf5io_column_open(hid_t file, const char *name, const char *path,
                              const column_how_t *how, hdf5io_column_t *out,
                              err_t *err);
/* Open it again in the same file, which [joined] is open by MPI-IO, to be read
 * by all ranks together. Collective. Lock held. */
err_code_t hdf5io_column_join(hdf5io_column_t *column, hid_t joined,
                              err_t *err);

/* Close what reading a located column does not need, or all. Lock held. */
void hdf5io_column_trim(hdf5io_column_t *column);
void hdf5io_column_close(hdf5io_column_t *column);

/* Take the 1-D column as a stream: row k is its numbers [k length + skip, (k +
 * 1) length + skip), and there are as many rows as the stream has whole ones
 * with skip 1, so that a row and the next number are always there. ERR_DATA: it
 * has other dimensions. */
err_code_t hdf5io_column_cut(hdf5io_column_t *column, int64_t length,
                             int64_t skip, err_t *err);

/* What to read and where to. */
typedef struct column_spaces {
    hid_t from, to; /* of the dataset, of memory */
    int64_t row;    /* the first one, for the sentence */
} column_spaces_t;

/* Read what is selected; then both spaces are closed, which may be invalid from
 * the start. ERR_IO or ERR_DATA (errno says why). The lock is held. */
err_code_t hdf5io_column_read_space(const hdf5io_column_t *column,
                                    const column_spaces_t *spaces,
                                    hid_t transfer, void *out, err_t *err);

/* Read the rows of [runs] (ascending, disjoint), one after the other, into
 * [out]. A located column reads from [fd], unless another file holds it.
 * [transfer] is H5P_DEFAULT or a collective transfer list; then all ranks call,
 * some with no runs. Takes the lock by itself. ERR_IO (errno says why), or
 * ERR_DATA for damaged data. */
err_code_t hdf5io_column_read(const hdf5io_column_t *column, int fd,
                              const column_run_t *runs, int64_t count,
                              hid_t transfer, void *out, err_t *err);

/* The name of the file that holds its bytes. */
const char *hdf5io_column_source(const hdf5io_column_t *column);

/* "[32, 32]": the shape of one sample, into [out], which is returned. */
char *hdf5io_column_shape(const hdf5io_column_t *column, char *out,
                          size_t room);

#endif
