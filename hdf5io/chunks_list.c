/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Where HDF5 stored the chunks. New versions list all chunks in one call. Old
 * ones give the place of one chunk after a walk over those before it, so they
 * are asked only for a moderate number of chunks.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "hdf5io/chunks_priv.h"

/* Maximum number of chunks whose places an old HDF5 is asked for. */
#define CHUNKS_ASK_MAX 4096

static uint64_t chunks_number(const hdf5io_chunks_t *chunks,
                              const hsize_t *offset)
{
    uint64_t number = 0;

    for (int d = 0; d < chunks->ndim; d++)
        number = number * chunks->grid[d] + offset[d] / chunks->chunk[d];
    return number;
}

/* Remember a chunk. False: it is not where it can be read. */
static bool chunks_place(hdf5io_chunks_t *chunks, const hsize_t *offset,
                         unsigned mask, haddr_t at, hsize_t bytes)
{
    const size_t most = hdf5io_filter_room(chunks->bytes);

    for (int d = 0; d < chunks->ndim; d++)
        if (offset[d] >= chunks->dims[d] || offset[d] % chunks->chunk[d] != 0)
            return false;
    if (at == HADDR_UNDEF || at > INT64_MAX || bytes == 0 || bytes > most)
        return false;
    chunks->places[chunks_number(chunks, offset)] = (chunk_place_t){
        .at = at, .bytes = (uint32_t)bytes, .mask = (uint32_t)mask};
    return true;
}

#ifdef HAVE_H5DCHUNK_ITER
typedef struct chunks_walk {
    hdf5io_chunks_t *chunks;
    uint64_t found;
} chunks_walk_t;

static int chunks_walk_one(const hsize_t *offset, unsigned mask, haddr_t at,
                           hsize_t bytes, void *context)
{
    chunks_walk_t *walk = context;

    if (!chunks_place(walk->chunks, offset, mask, at, bytes))
        return H5_ITER_STOP;
    walk->found++;
    return H5_ITER_CONT;
}

bool hdf5io_chunks_list(hdf5io_chunks_t *chunks, hid_t dataset)
{
    chunks_walk_t walk = {chunks, 0};

    return H5Dchunk_iter(dataset, H5P_DEFAULT, chunks_walk_one, &walk) >= 0 &&
           walk.found == chunks->count;
}

bool hdf5io_chunks_listable(uint64_t count)
{
    return count <= SIZE_MAX / sizeof(chunk_place_t);
}
#else
bool hdf5io_chunks_list(hdf5io_chunks_t *chunks, hid_t dataset)
{
    const hid_t space = H5Dget_space(dataset);
    bool good = space >= 0;

    for (uint64_t i = 0; i < chunks->count && good; i++) {
        hsize_t offset[H5S_MAX_RANK], bytes = 0;
        haddr_t at = HADDR_UNDEF;
        unsigned mask = 0;

        good = H5Dget_chunk_info(dataset, space, (hsize_t)i, offset, &mask, &at,
                                 &bytes) >= 0 &&
               chunks_place(chunks, offset, mask, at, bytes);
    }
    if (space >= 0)
        H5Sclose(space);
    return good;
}

bool hdf5io_chunks_listable(uint64_t count)
{
    return count <= CHUNKS_ASK_MAX;
}
#endif
