/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How a column is read best: past HDF5, together by MPI-IO, or through HDF5
 * with a chunk cache. A shuffled epoch comes back to a chunk again and again,
 * once for each of its rows, but (with shuffle: chunk) within one window only:
 * a cache that holds the window decodes each chunk once an epoch, and what was
 * read whole may leave first.
 */
#include "hdf5io/column_way.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "hdf5io/external.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"

/* Slots take 8 bytes each. */
#define WAY_SLOTS_MAX ((size_t)100003)
/* HDF5's name for "evict first what was read completely". */
#define WAY_READ_ONCE 1.0

/* Has every chunk been written? */
static bool column_chunks_whole(const hdf5io_column_t *column, hid_t create)
{
    hsize_t chunk[H5S_MAX_RANK], expected, there = 0;
    hid_t space;

    if (H5Pget_chunk(create, H5S_MAX_RANK, chunk) != column->ndim + 1)
        return false;
    expected = ((hsize_t)column->rows + chunk[0] - 1) / chunk[0];
    for (int i = 0; i < column->ndim; i++)
        expected *= (column->dims[i] + chunk[i + 1] - 1) / chunk[i + 1];
    space = H5Dget_space(column->dataset);
#if H5_VERSION_GE(1, 10, 5)
    H5Dget_num_chunks(column->dataset, space, &there);
#endif
    H5Sclose(space);
    return there == expected;
}

/* HDF5 refuses or hangs when ranks read together what has no storage: a
 * dataset or chunks that were never written, which hold fill values. */
static bool column_whole(const hdf5io_column_t *column, hid_t create)
{
    H5D_space_status_t status;

    switch (H5Pget_layout(create)) {
    case H5D_CONTIGUOUS:
        return H5Pget_external_count(create) == 0 && column->rows > 0 &&
               H5Dget_space_status(column->dataset, &status) >= 0 &&
               status == H5D_SPACE_STATUS_ALLOCATED;
    case H5D_CHUNKED:
        return column_chunks_whole(column, create);
    default:
        return false;
    }
}

/* Open the file of another name that holds the bytes; how many it has. */
static err_code_t column_source_open(hdf5io_column_t *out, uint64_t *file_bytes,
                                     err_t *err)
{
    struct stat status;

    out->fd = open(out->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (out->fd < 0 || fstat(out->fd, &status) != 0)
        return hdf5io_shard_descriptor_fail(out->source, err);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_DATA, "%s is not a file", out->source);
    *file_bytes = (uint64_t)status.st_size;
    return ERR_OK;
}

/* Its bytes can be read past HDF5: remember where they are. */
static err_code_t column_locate(hdf5io_column_t *out, uint64_t file_bytes,
                                err_t *err)
{
    haddr_t offset = H5Dget_offset(out->dataset);
    err_code_t code = ERR_OK;
    uint64_t end;

    if (offset == HADDR_UNDEF)
        return ERR_OK;
    if (out->source != NULL)
        code = column_source_open(out, &file_bytes, err);
    if (code != ERR_OK)
        return code;
    if (__builtin_mul_overflow((uint64_t)out->rows, out->row_bytes, &end) ||
        __builtin_add_overflow(end, offset, &end) || end > INT64_MAX)
        return err_set(err, ERR_DATA,
                       "%s is damaged: %s has %" PRId64 " rows of %zu bytes",
                       hdf5io_column_source(out), out->path, out->rows,
                       out->row_bytes);
    if (end > file_bytes)
        return err_set(err, ERR_DATA,
                       "%s is truncated: %s ends at byte %" PRIu64
                       ", the file has %" PRIu64 ": copy it again",
                       hdf5io_column_source(out), out->path, end, file_bytes);
    out->offset = offset;
    out->located = true;
    return ERR_OK;
}

/* The same for raw storage in an external file, if it is in one. */
static err_code_t column_locate_external(hdf5io_column_t *out, hid_t create,
                                         err_t *err)
{
    uint64_t bytes, file_bytes, offset;
    char *only = NULL;
    err_code_t code;

    if (__builtin_mul_overflow((uint64_t)out->rows, out->row_bytes, &bytes))
        bytes = UINT64_MAX;
    code = hdf5io_external_check(create, hdf5io_column_source(out), out->path,
                                 bytes, &only, &offset, err);
    if (code != ERR_OK || only == NULL)
        return code;
    free(out->source);
    out->source = only;
    code = column_source_open(out, &file_bytes, err);
    out->offset = offset;
    out->located = code == ERR_OK;
    return code;
}

err_code_t hdf5io_column_way_choose(hdf5io_column_t *out, hid_t create,
                                    bool raw, const column_how_t *how,
                                    err_t *err)
{
    if (raw && H5Pget_layout(create) == H5D_CONTIGUOUS &&
        H5Pget_external_count(create) > 0)
        return column_locate_external(out, create, err);
    if (!raw || !column_whole(out, create))
        return ERR_OK;
    out->collective = how->mpi;
    if (how->mpi || H5Pget_layout(create) != H5D_CONTIGUOUS)
        return ERR_OK;
    return column_locate(out, how->file_bytes, err);
}

/* Rows that pass through the same chunks, their bytes, and how many such bands
 * of chunks there are. */
typedef struct column_band {
    size_t bytes;
    size_t chunks; /* of one band */
    size_t count;
} column_band_t;

static bool column_band_find(const hdf5io_column_t *column, hid_t create,
                             column_band_t *out)
{
    hsize_t chunk[H5S_MAX_RANK];
    column_band_t band = {.chunks = 1};
    size_t elems;

    if (H5Pget_layout(create) != H5D_CHUNKED ||
        H5Pget_chunk(create, H5S_MAX_RANK, chunk) != column->ndim + 1)
        return false;
    elems = (size_t)chunk[0];
    band.count = ((size_t)column->rows + elems - 1) / elems;
    for (int i = 0; i < column->ndim; i++) {
        size_t across = (column->dims[i] + chunk[i + 1] - 1) / chunk[i + 1];

        band.chunks *= across;
        elems *= across * (size_t)chunk[i + 1];
    }
    band.bytes = elems * (column->row_bytes / (size_t)column->elems);
    *out = band;
    return true;
}

err_code_t hdf5io_column_cache_set(hdf5io_column_t *out, hid_t file,
                                   hid_t create, const column_how_t *how,
                                   err_t *err)
{
    column_band_t band;
    size_t slots, bytes = how->cache_bytes;
    hid_t access;

    if (!column_band_find(out, create, &band))
        return ERR_OK;
    if (bytes < band.bytes)
        bytes = band.bytes;
    /* Two chunks of one slot would push each other out: as many slots as there
     * are chunks, within reason. */
    slots = band.chunks * band.count;
    if (slots > WAY_SLOTS_MAX)
        slots = WAY_SLOTS_MAX;
    out->cached = band.bytes * band.count;
    if (out->cached > bytes)
        out->cached = bytes;
    out->cached += slots * sizeof(void *);
    H5Dclose(out->dataset);
    access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(access, slots + 1, bytes, WAY_READ_ONCE);
    out->dataset = H5Dopen2(file, out->path, access);
    H5Pclose(access);
    if (out->dataset < 0)
        return h5_err_set(err, ERR_DATA, "%s: %s does not open twice",
                          out->file, out->path);
    return ERR_OK;
}
