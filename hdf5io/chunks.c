/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finding the chunks of a dataset. Their places are relative to HDF5's own
 * start of the file, or absolute, depending on the version; it matters only for
 * files with a user block. There the stored bytes of a chunk are compared with
 * those that HDF5 returns: of a chunk that has other bytes at its two possible
 * places.
 */
#include "hdf5io/chunks.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "hdf5io/chunks_priv.h"
#include "hdf5io/h5.h"
#include "hdf5io/storage.h"

/* Largest decoded chunk. */
#define CHUNK_BYTES_MAX ((uint64_t)1 << 30)
/* The same if there are no filters: of larger ones HDF5 reads the part that is
 * needed. */
#define CHUNK_PLAIN_MAX ((uint64_t)1 << 24)
/* Largest row of such chunks, which the pool would keep. A header may claim any
 * size, as many chunks may have one place in the file. */
#define CHUNK_PLAIN_ROW_MAX ((uint64_t)1 << 28)

/* Set the grid and the sizes. False: not for this code. */
static bool chunks_shape(hdf5io_chunks_t *chunks, const chunks_source_t *source)
{
    uint64_t bytes = source->number_bytes;

    if (H5Pget_chunk(source->create, H5S_MAX_RANK, chunks->chunk) !=
        source->ndim)
        return false;
    chunks->ndim = source->ndim;
    chunks->number_bytes = source->number_bytes;
    memcpy(chunks->dims, source->dims,
           (size_t)source->ndim * sizeof chunks->dims[0]);
    chunks->count =
        hdf5io_storage_chunks(chunks->dims, chunks->chunk, chunks->ndim);
    if (chunks->count == 0 || chunks->count > INT64_MAX)
        return false;
    for (int d = 0; d < chunks->ndim; d++) {
        chunks->grid[d] = (chunks->dims[d] - 1) / chunks->chunk[d] + 1;
        if (__builtin_mul_overflow(bytes, chunks->chunk[d], &bytes) ||
            bytes > CHUNK_BYTES_MAX)
            return false;
    }
    chunks->bytes = (size_t)bytes;
    return true;
}

/* Are chunks at the edges stored without filters? */
static bool chunks_edges_plain(hid_t create)
{
    unsigned options = 0;

    return H5Pget_chunk_opts(create, &options) < 0 || options != 0;
}

static hsize_t chunks_user_block(hid_t dataset)
{
    const hid_t file = H5Iget_file_id(dataset);
    const hid_t create = file < 0 ? H5I_INVALID_HID : H5Fget_create_plist(file);
    hsize_t bytes = 0;

    if (create >= 0) {
        H5Pget_userblock(create, &bytes);
        H5Pclose(create);
    }
    if (file >= 0)
        H5Fclose(file);
    return bytes;
}

/* Two buffers, each for the stored bytes of any chunk. */
typedef struct chunk_pair {
    unsigned char *a, *b;
} chunk_pair_t;

static err_code_t pair_make(const hdf5io_chunks_t *chunks, chunk_pair_t *pair)
{
    size_t most = 0;
    err_code_t rc;

    for (uint64_t i = 0; i < chunks->count; i++)
        if (chunks->places[i].bytes > most)
            most = chunks->places[i].bytes;
    rc = mem_new(unsigned char, 2 * most, "a chunk", &pair->a, NULL);
    pair->b = rc == ERR_OK ? pair->a + most : NULL;
    return rc;
}

/* Read the bytes of [place] and [shift] bytes after it. */
static bool place_read(const chunk_place_t *place, int fd, hsize_t shift,
                       unsigned char *out)
{
    return pread(fd, out, place->bytes, (off_t)(place->at + shift)) ==
           (ssize_t)place->bytes;
}

/* The first chunk whose bytes tell whether places are to be moved by [block];
 * the number of chunks if there is none. */
static uint64_t chunks_telling(const hdf5io_chunks_t *chunks, int fd,
                               hsize_t block, const chunk_pair_t *pair)
{
    for (uint64_t i = 0; i < chunks->count; i++) {
        const chunk_place_t *place = &chunks->places[i];

        if (!place_read(place, fd, 0, pair->a) ||
            !place_read(place, fd, block, pair->b) ||
            memcmp(pair->a, pair->b, place->bytes) != 0)
            return i;
    }
    return chunks->count;
}

/* Read the stored bytes of chunk [number] as HDF5 finds them. */
static bool chunk_by_h5(const hdf5io_chunks_t *chunks, hid_t dataset,
                        uint64_t number, unsigned char *out)
{
    hsize_t start[H5S_MAX_RANK];
    uint32_t mask = 0;

    for (int d = chunks->ndim - 1; d >= 0; d--) {
        start[d] = number % chunks->grid[d] * chunks->chunk[d];
        number /= chunks->grid[d];
    }
    return H5Dread_chunk(dataset, H5P_DEFAULT, start, &mask, out) >= 0;
}

/* Find what is to be added to all places in a file with a user block; *shift
 * stays if both places of all chunks have the same bytes. */
static bool shift_find(const hdf5io_chunks_t *chunks,
                       const chunks_source_t *source, hsize_t block,
                       const chunk_pair_t *pair, hsize_t *shift)
{
    const uint64_t i = chunks_telling(chunks, source->fd, block, pair);
    const chunk_place_t *place = &chunks->places[i];

    if (i == chunks->count)
        return true;
    if (!chunk_by_h5(chunks, source->dataset, i, pair->a))
        return false;
    for (int times = 0; times < 2; times++) {
        *shift = (hsize_t)times * block;
        if (place_read(place, source->fd, *shift, pair->b) &&
            memcmp(pair->a, pair->b, place->bytes) == 0)
            return true;
    }
    return false;
}

static bool chunks_shift(hdf5io_chunks_t *chunks, const chunks_source_t *source,
                         hsize_t block)
{
    chunk_pair_t pair = {0};
    hsize_t shift = 0;
    bool good = source->fd >= 0 && pair_make(chunks, &pair) == ERR_OK &&
                shift_find(chunks, source, block, &pair, &shift);

    for (uint64_t i = 0; i < chunks->count && good; i++)
        chunks->places[i].at += shift;
    mem_free(pair.a);
    return good;
}

/* The value for chunks->row_bytes. The places must be known. */
static size_t chunks_row_bytes(const hdf5io_chunks_t *chunks)
{
    if (chunks->pipe.count > 0)
        return 0;
    for (int d = 1; d < chunks->ndim; d++)
        if (chunks->chunk[d] != chunks->dims[d])
            return 0;
    for (uint64_t i = 0; i < chunks->count; i++)
        if (chunks->places[i].bytes != chunks->bytes)
            return 0;
    return chunks->bytes / (size_t)chunks->chunk[0];
}

/* Find where all chunks are stored. *way: they were found, or not.
 * ERR_MEMORY. */
static err_code_t chunks_locate(hdf5io_chunks_t *chunks,
                                const chunks_source_t *source,
                                hdf5io_way_t *way, err_t *err)
{
    const hsize_t block = chunks_user_block(source->dataset);
    err_code_t rc = mem_new(chunk_place_t, chunks->count, "places of chunks",
                            &chunks->places, err);
    bool good;

    if (rc != ERR_OK)
        return rc;
    good = hdf5io_chunks_list(chunks, source->dataset);
    for (uint64_t i = 0; i < chunks->count && good; i++)
        good = chunks->places[i].bytes > 0;
    if (good && block > 0)
        good = chunks_shift(chunks, source, block);
    if (good)
        chunks->row_bytes = chunks_row_bytes(chunks);
    *way = good ? HDF5IO_WAY_CHUNKS : HDF5IO_WAY_PLACES;
    if (good && chunks->row_bytes >= CHUNK_ROW_LEAST)
        *way = HDF5IO_WAY_ROWS;
    return ERR_OK;
}

static bool plain_fits(const hdf5io_chunks_t *chunks)
{
    const size_t row = hdf5io_chunks_wish(chunks);

    return chunks->bytes <= CHUNK_PLAIN_MAX && row > 0 &&
           row <= CHUNK_PLAIN_ROW_MAX;
}

/* The way in which the chunks can be read, as far as it does not depend on
 * their places. */
static hdf5io_way_t chunks_way(hdf5io_chunks_t *chunks,
                               const chunks_source_t *source)
{
    const hdf5io_storage_t storage = {.dataset = source->dataset,
                                      .create = source->create,
                                      .file = source->file,
                                      .path = source->path,
                                      .ndim = source->ndim,
                                      .dims = source->dims};

    if (!hdf5io_filter_find(source->create, &chunks->pipe))
        return HDF5IO_WAY_FILTER;
    if (!chunks_shape(chunks, source))
        return chunks->count == 0 ? HDF5IO_WAY_UNWRITTEN : HDF5IO_WAY_LARGE;
    if (chunks->pipe.count == 0 && !plain_fits(chunks))
        return HDF5IO_WAY_LARGE;
    if (chunks_edges_plain(source->create))
        return HDF5IO_WAY_EDGES;
    if (!hdf5io_storage_chunks_whole(&storage))
        return HDF5IO_WAY_UNWRITTEN;
    return hdf5io_chunks_listable(chunks->count) ? HDF5IO_WAY_CHUNKS
                                                 : HDF5IO_WAY_MANY;
}

/* *way: how the chunks can be read. ERR_MEMORY. */
static err_code_t chunks_find(hdf5io_chunks_t *chunks,
                              const chunks_source_t *source, hdf5io_way_t *way,
                              err_t *err)
{
    *way = chunks_way(chunks, source);
    return *way == HDF5IO_WAY_CHUNKS ? chunks_locate(chunks, source, way, err)
                                     : ERR_OK;
}

err_code_t hdf5io_chunks_open(const chunks_source_t *source,
                              hdf5io_chunks_t **out, hdf5io_way_t *way,
                              err_t *err)
{
    hdf5io_chunks_t *chunks = NULL;
    err_code_t rc = mem_new(hdf5io_chunks_t, 1, "chunks", &chunks, err);

    h5_lock_check();
    if (rc != ERR_OK)
        return rc;
    chunks->users = 1;
    chunks->file = source->file;
    chunks->path = source->path;
    chunks->pool = source->pool;
    chunks->forgets = source->owner == POOL_NOBODY;
    chunks->owner =
        chunks->forgets ? hdf5io_pool_owner(source->pool) : source->owner;
    rc = chunks_find(chunks, source, way, err);
    H5Eclear2(H5E_DEFAULT);
    if (rc != ERR_OK ||
        !(hdf5io_way_decodes(*way) || *way == HDF5IO_WAY_ROWS)) {
        hdf5io_chunks_close(chunks);
        chunks = NULL;
    }
    if (rc == ERR_OK)
        *out = chunks;
    return rc;
}

void hdf5io_chunks_share(hdf5io_chunks_t *chunks)
{
    chunks->users++;
}

void hdf5io_chunks_close(hdf5io_chunks_t *chunks)
{
    if (chunks == NULL || --chunks->users > 0)
        return;
    if (chunks->forgets)
        hdf5io_pool_forget(chunks->pool, chunks->owner);
    mem_free(chunks->places);
    mem_free(chunks);
}

bool hdf5io_chunks_through_h5(const hdf5io_chunks_t *chunks)
{
    return chunks->places == NULL;
}

size_t hdf5io_chunks_bytes(const hdf5io_chunks_t *chunks)
{
    return sizeof *chunks + (chunks->places == NULL
                                 ? 0
                                 : chunks->count * sizeof *chunks->places);
}

size_t hdf5io_chunks_wish(const hdf5io_chunks_t *chunks)
{
    size_t bytes = hdf5io_filter_room(chunks->bytes);

    for (int d = 1; d < chunks->ndim; d++)
        if (__builtin_mul_overflow(bytes, chunks->grid[d], &bytes))
            return 0;
    /* and a buffer for stored bytes */
    return bytes + hdf5io_filter_room(chunks->bytes);
}
