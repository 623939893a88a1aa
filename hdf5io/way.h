/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* way: how the bytes of a column are read, and why not in a faster way. */
#ifndef CDDP_HDF5IO_WAY_H
#define CDDP_HDF5IO_WAY_H

#include <stdbool.h>

typedef enum hdf5io_way {
    HDF5IO_WAY_PREAD,  /* at a known offset of a file */
    HDF5IO_WAY_CHUNKS, /* pread of chunks, and own decoders */
    HDF5IO_WAY_MANY,   /* own decoders, of bytes that HDF5 reads */
    HDF5IO_WAY_MPI,    /* all ranks together */
    /* H5Dread, because of: */
    HDF5IO_WAY_TYPE,      /* the type of its numbers */
    HDF5IO_WAY_EXTERNAL,  /* several external files */
    HDF5IO_WAY_COMPACT,   /* the layout */
    HDF5IO_WAY_VIRTUAL,   /* the layout */
    HDF5IO_WAY_UNWRITTEN, /* numbers or chunks without storage */
    HDF5IO_WAY_FILTER,    /* another filter */
    HDF5IO_WAY_LARGE,     /* the size of its chunks */
    HDF5IO_WAY_EDGES,     /* chunks at the edges have no filters */
    HDF5IO_WAY_PLACES,    /* chunks are not where HDF5 says */
    HDF5IO_WAY_ASKED,     /* the caller wants it */
    /* and without HDF5: */
    HDF5IO_WAY_ROWS, /* pread of rows in chunks that have no filters */
    HDF5IO_WAYS
} hdf5io_way_t;

/* Are chunks decoded without HDF5? */
bool hdf5io_way_decodes(hdf5io_way_t way);

/* The way for people: "pread", "chunks", "pread in chunks", "mpi" or
 * "H5Dread". */
const char *hdf5io_way_name(hdf5io_way_t way);

/* Why it is not in a faster way: "only HDF5 undoes its filters". NULL: it is
 * the fastest one for this layout. */
const char *hdf5io_way_why(hdf5io_way_t way);

#endif
