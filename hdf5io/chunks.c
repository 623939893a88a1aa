/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finding the chunks of a dataset. Their places are relative to HDF5's own
 * start of the file, or absolute, depending on the version; it matters only for
 * files with a user block. There the stored bytes of the first chunk are
 * compared with those that HDF5 returns.
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

/* Does the file hold the bytes of the first chunk [shift] bytes after its
 * place? [expected]: its bytes; [buffer]: as much room. */
static bool chunks_same(const hdf5io_chunks_t *chunks, int fd, hsize_t shift,
                        const void *expected, void *buffer)
{
    const chunk_place_t *place = &chunks->places[0];

    return pread(fd, buffer, place->bytes, (off_t)(place->at + shift)) ==
               (ssize_t)place->bytes &&
           memcmp(buffer, expected, place->bytes) == 0;
}

/* Find what is to be added to all places in a file with a user block. */
static bool chunks_shift(hdf5io_chunks_t *chunks, const chunks_source_t *source,
                         hsize_t block)
{
    const hsize_t start[H5S_MAX_RANK] = {0};
    const size_t bytes = chunks->places[0].bytes;
    unsigned char *both = NULL;
    hsize_t shift = block;
    uint32_t mask = 0;
    bool good;

    if (mem_new(unsigned char, 2 * bytes, "a chunk", &both, NULL) != ERR_OK)
        return false;
    good = source->fd >= 0 &&
           H5Dread_chunk(source->dataset, H5P_DEFAULT, start, &mask, both) >= 0;
    if (good && !chunks_same(chunks, source->fd, shift, both, both + bytes)) {
        shift = 0;
        good = chunks_same(chunks, source->fd, shift, both, both + bytes);
    }
    for (uint64_t i = 0; i < chunks->count && good; i++)
        chunks->places[i].at += shift;
    mem_free(both);
    return good;
}

/* Find where all chunks are stored. *good: they were found. ERR_MEMORY. */
static err_code_t chunks_locate(hdf5io_chunks_t *chunks,
                                const chunks_source_t *source, bool *good,
                                err_t *err)
{
    const hsize_t block = chunks_user_block(source->dataset);
    err_code_t rc = mem_new(chunk_place_t, chunks->count, "places of chunks",
                            &chunks->places, err);

    if (rc != ERR_OK)
        return rc;
    *good = hdf5io_chunks_list(chunks, source->dataset);
    for (uint64_t i = 0; i < chunks->count && *good; i++)
        *good = chunks->places[i].bytes > 0;
    if (*good && block > 0)
        *good = chunks_shift(chunks, source, block);
    return ERR_OK;
}

/* *good: this code can read the chunks. ERR_MEMORY. */
static err_code_t chunks_find(hdf5io_chunks_t *chunks,
                              const chunks_source_t *source, bool *good,
                              err_t *err)
{
    const hdf5io_storage_t storage = {.dataset = source->dataset,
                                      .create = source->create,
                                      .file = source->file,
                                      .path = source->path,
                                      .ndim = source->ndim,
                                      .dims = source->dims};

    *good = H5Pget_layout(source->create) == H5D_CHUNKED &&
            chunks_shape(chunks, source) &&
            hdf5io_filter_find(source->create, &chunks->pipe) &&
            (chunks->pipe.count > 0 || chunks->bytes <= CHUNK_PLAIN_MAX) &&
            !chunks_edges_plain(source->create) &&
            hdf5io_storage_chunks_whole(&storage);
    if (*good && hdf5io_chunks_listable(chunks->count))
        return chunks_locate(chunks, source, good, err);
    return ERR_OK;
}

err_code_t hdf5io_chunks_open(const chunks_source_t *source,
                              hdf5io_chunks_t **out, err_t *err)
{
    hdf5io_chunks_t *chunks = NULL;
    err_code_t rc = mem_new(hdf5io_chunks_t, 1, "chunks", &chunks, err);
    bool good = false;

    h5_lock_check();
    if (rc != ERR_OK)
        return rc;
    chunks->users = 1;
    chunks->file = source->file;
    chunks->path = source->path;
    chunks->pool = source->pool;
    chunks->owner = hdf5io_pool_owner(source->pool);
    rc = chunks_find(chunks, source, &good, err);
    H5Eclear2(H5E_DEFAULT);
    if (rc != ERR_OK || !good) {
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
