/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* storage: is what a dataset says to hold really stored? */
#ifndef CDDP_HDF5IO_STORAGE_H
#define CDDP_HDF5IO_STORAGE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* An open dataset, its creation list and its shape, with
 * the names for sentences. */
typedef struct hdf5io_storage {
    hid_t dataset, create;
    const char *file, *path;
    int ndim;
    const hsize_t *dims;
} hdf5io_storage_t;

/* How many chunks of [chunk] cover [dims]; UINT64_MAX: more than can be
 * counted. 0 if a dimension is 0. */
uint64_t hdf5io_storage_chunks(const hsize_t *dims, const hsize_t *chunk,
                               int ndim);

/* Has every chunk of a chunked dataset been written? Asks HDF5 to count them.
 * Lock held. */
bool hdf5io_storage_chunks_whole(const hdf5io_storage_t *storage);

/*
 * ERR_DATA: more bytes than any file can hold (HDF5 takes the size modulo 2^64
 * in some places, and reads beyond its memory then); compact or contiguous
 * storage of another length than the shape; chunks larger than it; values that
 * were never written and have no fill value either (HDF5 leaves in memory what
 * was there); external raw files that are missing or too short. Lock held.
 */
err_code_t hdf5io_storage_check(const hdf5io_storage_t *storage, err_t *err);

#endif
