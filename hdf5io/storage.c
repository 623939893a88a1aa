/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Checks that HDF5 itself does not make before it reads. */
#include "hdf5io/storage.h"

#include <inttypes.h>
#include <stdlib.h>

#include "hdf5io/external.h"
#include "hdf5io/h5.h"

uint64_t hdf5io_storage_chunks(const hsize_t *dims, const hsize_t *chunk,
                               int ndim)
{
    uint64_t chunks = 1;

    for (int d = 0; d < ndim; d++)
        if (dims[d] == 0 || chunk[d] == 0)
            return 0;
    for (int d = 0; d < ndim; d++)
        if (__builtin_mul_overflow(chunks, (dims[d] - 1) / chunk[d] + 1,
                                   &chunks))
            return UINT64_MAX;
    return chunks;
}

bool hdf5io_storage_chunks_whole(const hdf5io_storage_t *storage)
{
    hsize_t chunk[H5S_MAX_RANK], there = 0;
    uint64_t expected;
    hid_t space;

    h5_lock_check();
    if (H5Pget_chunk(storage->create, H5S_MAX_RANK, chunk) != storage->ndim)
        return false;
    expected = hdf5io_storage_chunks(storage->dims, chunk, storage->ndim);
    if (expected == 0)
        return true;
    space = H5Dget_space(storage->dataset);
#if H5_VERSION_GE(1, 10, 5)
    H5Dget_num_chunks(storage->dataset, space, &there);
#endif
    H5Sclose(space);
    return there == expected;
}

/* Does HDF5 return a defined value for data that was never written? */
static bool storage_filled(hid_t create)
{
    H5D_fill_value_t value = H5D_FILL_VALUE_DEFAULT;
    H5D_fill_time_t time = H5D_FILL_TIME_IFSET;

    if (H5Pfill_value_defined(create, &value) < 0 ||
        H5Pget_fill_time(create, &time) < 0)
        return true;
    return value != H5D_FILL_VALUE_UNDEFINED && time != H5D_FILL_TIME_NEVER;
}

static bool storage_written(const hdf5io_storage_t *storage)
{
    H5D_space_status_t status = H5D_SPACE_STATUS_ALLOCATED;

    switch (H5Pget_layout(storage->create)) {
    case H5D_CHUNKED:
        return hdf5io_storage_chunks_whole(storage);
    case H5D_CONTIGUOUS:
        return H5Pget_external_count(storage->create) > 0 ||
               H5Dget_space_status(storage->dataset, &status) < 0 ||
               status == H5D_SPACE_STATUS_ALLOCATED;
    default:
        return true;
    }
}

/* Bytes of all values; UINT64_MAX on overflow. */
static uint64_t storage_bytes(const hdf5io_storage_t *storage)
{
    hid_t type = H5Dget_type(storage->dataset);
    uint64_t bytes = type < 0 ? 0 : (uint64_t)H5Tget_size(type);

    if (type >= 0)
        H5Tclose(type);
    for (int d = 0; d < storage->ndim; d++)
        if (storage->dims[d] == 0)
            return 0;
    for (int d = 0; d < storage->ndim; d++)
        if (__builtin_mul_overflow(bytes, storage->dims[d], &bytes))
            return UINT64_MAX;
    return bytes;
}

/* Are all chunks at most as large as the maximum shape? HDF5 never creates
 * larger ones, but reads beyond a decoded chunk if a damaged header has
 * them. */
static bool storage_chunks_fit(const hdf5io_storage_t *storage)
{
    hsize_t chunk[H5S_MAX_RANK], dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    hid_t space;
    bool fit;

    if (H5Pget_layout(storage->create) != H5D_CHUNKED)
        return true;
    space = H5Dget_space(storage->dataset);
    fit = H5Pget_chunk(storage->create, H5S_MAX_RANK, chunk) == storage->ndim &&
          H5Sget_simple_extent_dims(space, dims, most) == storage->ndim;
    for (int d = 0; d < storage->ndim && fit; d++)
        fit = chunk[d] > 0 && (most[d] == H5S_UNLIMITED || chunk[d] <= most[d]);
    if (space >= 0)
        H5Sclose(space);
    return fit;
}

/* NOLINTNEXTLINE(misc-no-recursion): HDF5 limits how deep types are nested */
bool hdf5io_storage_points(hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    bool points = class == H5T_VLEN || class == H5T_REFERENCE ||
                  (class == H5T_STRING && H5Tis_variable_str(type) > 0);
    const int members = class == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    hid_t part;

    for (int i = 0; i < members && !points; i++) {
        part = H5Tget_member_type(type, (unsigned)i);
        points = part >= 0 && hdf5io_storage_points(part);
        if (part >= 0)
            H5Tclose(part);
    }
    if (class == H5T_ARRAY) {
        part = H5Tget_super(type);
        points = part >= 0 && hdf5io_storage_points(part);
        if (part >= 0)
            H5Tclose(part);
    }
    return points;
}

/* Is the size of contiguous or compact storage that of the shape? */
static bool storage_long_enough(const hdf5io_storage_t *storage, uint64_t bytes)
{
    const uint64_t there = (uint64_t)H5Dget_storage_size(storage->dataset);
    const hid_t type = H5Dget_type(storage->dataset);
    const bool points = type >= 0 && hdf5io_storage_points(type);

    if (type >= 0)
        H5Tclose(type);
    if (points)
        return true;
    switch (H5Pget_layout(storage->create)) {
    case H5D_COMPACT:
        return there >= bytes;
    case H5D_CONTIGUOUS: /* 0: nothing was written */
        return H5Pget_external_count(storage->create) > 0 || there == 0 ||
               there == bytes;
    default:
        return true;
    }
}

err_code_t hdf5io_storage_check(const hdf5io_storage_t *storage, err_t *err)
{
    const uint64_t bytes = storage_bytes(storage);
    char *only = NULL;
    uint64_t offset;
    err_code_t rc = ERR_OK;

    if (bytes > INT64_MAX)
        return err_set(err, ERR_DATA,
                       "%s: %s has a shape of more bytes than any file can "
                       "hold: its header is wrong",
                       storage->file, storage->path);
    if (!storage_long_enough(storage, bytes))
        return err_set(err, ERR_DATA,
                       "%s is damaged: %s has a shape of %" PRIu64
                       " bytes, but storage of another size",
                       storage->file, storage->path, bytes);
    if (bytes > 0 && !storage_chunks_fit(storage))
        return err_set(err, ERR_DATA,
                       "%s is damaged: chunks of %s are larger than its shape",
                       storage->file, storage->path);
    if (bytes > 0 && !storage_filled(storage->create) &&
        !storage_written(storage))
        return err_set(err, ERR_DATA,
                       "%s: not all of %s was ever written, and it has no fill "
                       "value (or the fill time \"never\"), so that the rest "
                       "is undefined: write all of it",
                       storage->file, storage->path);
    if (H5Pget_external_count(storage->create) > 0)
        rc = hdf5io_external_check(&(external_data_t){storage->create,
                                                      storage->file,
                                                      storage->path, bytes},
                                   &only, &offset, err);
    free(only);
    return rc;
}
