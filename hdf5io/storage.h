/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* storage: checks that the storage of a dataset matches its shape. */
#ifndef CDDP_HDF5IO_STORAGE_H
#define CDDP_HDF5IO_STORAGE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* An open dataset, its names for error sentences, its creation list and its
 * shape. */
typedef struct hdf5io_storage {
    hid_t dataset, create;
    const char *file, *path;
    int ndim;
    const hsize_t *dims;
} hdf5io_storage_t;

/* Number of chunks of shape [chunk] that cover [dims]; UINT64_MAX if it
 * overflows; 0 if a dimension is 0. */
uint64_t hdf5io_storage_chunks(const hsize_t *dims, const hsize_t *chunk,
                               int ndim);

/* Has every chunk of a chunked dataset been written? HDF5 counts them. Lock
 * held. */
bool hdf5io_storage_chunks_whole(const hdf5io_storage_t *storage);

/* Do values of [type], or of a part of it, have variable length or refer to
 * something? In memory they are pointers, in files places. Lock held. */
bool hdf5io_storage_points(hid_t type);

/*
 * ERR_DATA if one of these holds:
 * - the shape has more bytes than any file can hold (HDF5 computes some sizes
 *   modulo 2^64 and would read beyond its buffers);
 * - compact or contiguous storage has another size than the shape;
 * - chunks are larger than the shape;
 * - some values were never written and there is no fill value (HDF5 would leave
 *   old memory contents in the buffer);
 * - external raw files are missing or too short.
 * Lock held.
 */
err_code_t hdf5io_storage_check(const hdf5io_storage_t *storage, err_t *err);

#endif
