/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Chooses the fastest way to read a column: pread without HDF5, decoding chunks
 * without HDF5, collective MPI-IO, or HDF5 with a chunk cache. A shuffled epoch
 * needs a chunk once for each of its rows; with `shuffle: chunk` all these
 * reads are in one window. So with a cache that holds the chunks of a window
 * each chunk is decoded once per epoch, and chunks that were read completely
 * may be evicted first.
 */
#include "hdf5io/column_way.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5io/descriptor.h"
#include "hdf5io/external.h"
#include "hdf5io/h5.h"
#include "hdf5io/storage.h"

/* Maximum hash slots of a chunk cache, 8 bytes each. */
#define WAY_SLOTS_MAX ((size_t)100003)
/* Maximum cache bytes per row of chunks if the chunks have no filters. */
#define WAY_PLAIN_MAX ((uint64_t)1 << 28)
/* HDF5's setting for "evict completely read chunks first". */
#define WAY_READ_ONCE 1.0

/* Write the shape of the whole dataset, rows first, to [dims]; returns the
 * number of dimensions. */
static int column_dims(const hdf5io_column_t *column,
                       hsize_t dims[H5S_MAX_RANK])
{
    dims[0] = (hsize_t)column->rows;
    memcpy(dims + 1, column->dims, (size_t)column->ndim * sizeof dims[0]);
    return column->ndim + 1;
}

static bool column_chunks_whole(const hdf5io_column_t *column, hid_t create)
{
    hsize_t dims[H5S_MAX_RANK];
    const int ndim = column_dims(column, dims);

    return hdf5io_storage_chunks_whole(
        &(hdf5io_storage_t){.dataset = column->dataset,
                            .create = create,
                            .ndim = ndim,
                            .dims = dims});
}

/* Is all data stored? HDF5 fails or hangs in collective reads of data without
 * storage: datasets or chunks that were never written and read as fill
 * values. */
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

/* Open the other file that holds the data, and get its size. */
static err_code_t column_source_open(hdf5io_column_t *out, uint64_t *file_bytes,
                                     err_t *err)
{
    struct stat status;

    out->fd = hdf5io_descriptor_open(out->source);
    if (out->fd < 0 || fstat(out->fd, &status) != 0)
        return hdf5io_descriptor_fail(out->source, err);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_DATA, "%s is not a file", out->source);
    *file_bytes = (uint64_t)status.st_size;
    return ERR_OK;
}

/* Set the file offset if pread can read the data. */
static err_code_t column_locate(hdf5io_column_t *out, uint64_t file_bytes,
                                err_t *err)
{
    haddr_t offset = H5Dget_offset(out->dataset);
    err_code_t rc = ERR_OK;
    uint64_t end;

    if (offset == HADDR_UNDEF) {
        out->way = HDF5IO_WAY_UNWRITTEN;
        return ERR_OK;
    }
    if (out->source != NULL)
        rc = column_source_open(out, &file_bytes, err);
    if (rc != ERR_OK)
        return rc;
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
    out->stored = end - offset;
    out->located = true;
    out->way = HDF5IO_WAY_PREAD;
    return ERR_OK;
}

/* column_locate for external raw files: possible if one file holds
 * everything. */
static err_code_t column_locate_external(hdf5io_column_t *out, hid_t create,
                                         err_t *err)
{
    uint64_t bytes, file_bytes, offset;
    char *only = NULL;
    err_code_t rc;

    if (__builtin_mul_overflow((uint64_t)out->rows, out->row_bytes, &bytes))
        bytes = UINT64_MAX;
    rc = hdf5io_external_check(
        &(external_data_t){create, hdf5io_column_source(out), out->path, bytes},
        &only, &offset, err);
    if (rc != ERR_OK || only == NULL)
        return rc;
    free(out->source);
    out->source = only;
    rc = column_source_open(out, &file_bytes, err);
    out->offset = offset;
    out->located = rc == ERR_OK;
    if (out->located)
        out->way = HDF5IO_WAY_PREAD;
    return rc;
}

/* Find the chunks, if they can be read without HDF5. */
static err_code_t column_chunks_find(hdf5io_column_t *out, hid_t create,
                                     const column_how_t *how, err_t *err)
{
    hsize_t dims[H5S_MAX_RANK];
    chunks_source_t source = {.dataset = out->dataset,
                              .create = create,
                              .file = hdf5io_column_source(out),
                              .path = out->path,
                              .ndim = column_dims(out, dims),
                              .dims = dims,
                              .number_bytes = hdf5io_convert_bytes(out->type),
                              .fd = how->fd,
                              .pool = how->pool,
                              .owner = how->owner};
    uint64_t bytes;
    err_code_t rc = ERR_OK;

    if (out->source != NULL) {
        rc = column_source_open(out, &bytes, err);
        source.fd = out->fd;
    }
    if (rc == ERR_OK)
        rc = hdf5io_chunks_open(&source, &out->chunks, &out->way, err);
    if (out->chunks == NULL && out->fd >= 0) {
        close(out->fd);
        out->fd = -1;
    }
    return rc;
}

/* Why HDF5 reads the data by itself, unless something better is found. */
static hdf5io_way_t column_way_h5(hid_t create, bool raw)
{
    if (!raw)
        return HDF5IO_WAY_TYPE;
    switch (H5Pget_layout(create)) {
    case H5D_CONTIGUOUS:
        return H5Pget_external_count(create) > 0 ? HDF5IO_WAY_EXTERNAL
                                                 : HDF5IO_WAY_UNWRITTEN;
    case H5D_COMPACT:
        return HDF5IO_WAY_COMPACT;
    case H5D_VIRTUAL:
        return HDF5IO_WAY_VIRTUAL;
    default:
        return HDF5IO_WAY_UNWRITTEN;
    }
}

err_code_t hdf5io_column_way_choose(hdf5io_column_t *out, hid_t create,
                                    bool raw, const column_how_t *how,
                                    err_t *err)
{
    out->way = column_way_h5(create, raw);
    if (raw && H5Pget_layout(create) == H5D_CONTIGUOUS &&
        H5Pget_external_count(create) > 0)
        return column_locate_external(out, create, err);
    if (raw && !how->mpi && how->pool != NULL &&
        H5Pget_layout(create) == H5D_CHUNKED)
        return column_chunks_find(out, create, how, err);
    if (!raw || !column_whole(out, create))
        return ERR_OK;
    out->collective = how->mpi;
    out->way = how->mpi ? HDF5IO_WAY_MPI : HDF5IO_WAY_ASKED;
    if (how->mpi || H5Pget_layout(create) != H5D_CONTIGUOUS)
        return ERR_OK;
    return column_locate(out, how->file_bytes, err);
}

/* A row of chunks: all chunks with the same position along dimension 0. */
typedef struct column_band {
    uint64_t rows;
    uint64_t bytes;
    uint64_t chunks; /* chunks per row of chunks */
    uint64_t count;
} column_band_t;

/* a * b; UINT64_MAX on overflow. */
static uint64_t column_product(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static bool column_band_find(const hdf5io_column_t *column, hid_t create,
                             column_band_t *out)
{
    hsize_t chunk[H5S_MAX_RANK], dims[H5S_MAX_RANK];
    const int ndim = column_dims(column, dims);

    if (H5Pget_layout(create) != H5D_CHUNKED ||
        H5Pget_chunk(create, H5S_MAX_RANK, chunk) != ndim)
        return false;
    out->rows = chunk[0];
    out->count = hdf5io_storage_chunks(dims, chunk, 1);
    out->chunks = hdf5io_storage_chunks(dims + 1, chunk + 1, ndim - 1);
    out->bytes = out->chunks;
    for (int d = 0; d < ndim; d++)
        out->bytes = column_product(out->bytes, chunk[d]);
    out->bytes =
        column_product(out->bytes, column->row_bytes / (size_t)column->elems);
    return true;
}

/* Cache size in bytes: at least a row of chunks. But chunks without filters
 * need no decoding, so a very large row of them is not cached: otherwise a
 * damaged header of a few bytes could ask for any amount of memory. */
static size_t column_cache_bytes(const column_band_t *band, hid_t create,
                                 const column_how_t *how)
{
    if (band->bytes <= how->cache_bytes ||
        (H5Pget_nfilters(create) == 0 && band->bytes > WAY_PLAIN_MAX))
        return how->cache_bytes;
    return band->bytes;
}

err_code_t hdf5io_column_cache_set(hdf5io_column_t *out, hid_t file,
                                   hid_t create, const column_how_t *how,
                                   err_t *err)
{
    column_band_t band;
    size_t slots, bytes;
    uint64_t all;
    hid_t access;

    if (!column_band_find(out, create, &band))
        return ERR_OK;
    out->band = band.rows > INT64_MAX ? INT64_MAX : (int64_t)band.rows;
    if (out->chunks != NULL) {
        out->cached = hdf5io_chunks_bytes(out->chunks);
        return ERR_OK;
    }
    bytes = column_cache_bytes(&band, create, how);
    /* Two chunks in the same slot would evict each other, so there are as many
     * slots as chunks, up to a limit. */
    all = column_product(band.chunks, band.count);
    slots = all > WAY_SLOTS_MAX ? WAY_SLOTS_MAX : (size_t)all;
    all = column_product(band.bytes, band.count);
    out->cached = all > bytes ? bytes : (size_t)all;
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
