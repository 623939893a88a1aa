/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reading chunks before they are needed. */
#include <string.h>

#include "hdf5io/chunks_priv.h"

/* Read the chunk at [grid] into the pool, if it is not there. False: the pool
 * is full. */
static bool ahead_chunk(const hdf5io_chunks_t *chunks,
                        const chunks_from_t *from, const hsize_t *grid,
                        uint64_t batch)
{
    const uint64_t number = hdf5io_chunks_number(chunks, grid);
    pool_extent_t *extent = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;

    switch (hdf5io_pool_want(chunks->pool, chunks->owner, number,
                             hdf5io_filter_room(chunks->bytes), batch,
                             &extent)) {
    case POOL_FULL:
        return false;
    case POOL_HERE:
        return true;
    case POOL_FILL:
        break;
    }
    rc = hdf5io_chunks_fill(chunks, from, number, grid, extent, &err);
    hdf5io_pool_filled(chunks->pool, extent, rc == ERR_OK);
    hdf5io_pool_give(chunks->pool, extent, 0, SIZE_MAX);
    return true;
}

bool hdf5io_chunks_ahead(hdf5io_chunks_t *chunks, const chunks_from_t *from,
                         const chunks_block_t *block, uint64_t batch)
{
    hsize_t grid[H5S_MAX_RANK];
    chunks_box_t box;
    bool room;

    if (!hdf5io_chunks_box(chunks, block, &box) ||
        hdf5io_chunks_plain(chunks, block))
        return true;
    memcpy(grid, box.first, sizeof grid);
    do
        room = ahead_chunk(chunks, from, grid, batch);
    while (room && hdf5io_chunks_next(chunks, &box, grid));
    return room;
}

void hdf5io_chunks_tell(const hdf5io_chunks_t *chunks, int fd,
                        const chunks_block_t *block)
{
    hsize_t grid[H5S_MAX_RANK];
    chunks_box_t box;

    if (chunks->places == NULL || !hdf5io_chunks_box(chunks, block, &box))
        return;
    memcpy(grid, box.first, sizeof grid);
    do {
        const uint64_t number = hdf5io_chunks_number(chunks, grid);
        const chunk_place_t *place = &chunks->places[number];

        if (!hdf5io_pool_has(chunks->pool, chunks->owner, number))
            hdf5io_slow_tell(fd, place->at, place->bytes);
    } while (hdf5io_chunks_next(chunks, &box, grid));
}
