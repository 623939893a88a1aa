/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading a block: for each chunk that it touches, the decoded chunk is taken
 * from the pool, where it is filled first if it is not there, and the common
 * part is copied. Rows of chunks without filters are read directly into the
 * output, unless they are so short that one read of the whole chunk is faster.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "hdf5io/chunks_priv.h"
#include "hdf5io/h5.h"

/* Neighbouring chunks are read together up to this many bytes. */
#define PLAIN_MOST ((size_t)4 << 20)

/* First row of the chunk at [grid]. */
static uint64_t chunk_row(const hdf5io_chunks_t *chunks, const hsize_t *grid)
{
    return grid[0] * chunks->chunk[0];
}

/* Bytes that all users of the chunk at [grid] read from it in an epoch. */
static size_t chunk_all(const hdf5io_chunks_t *chunks, const hsize_t *grid)
{
    size_t all = chunks->number_bytes * (size_t)chunks->users;

    for (int d = 0; d < chunks->ndim; d++) {
        const hsize_t left = chunks->dims[d] - grid[d] * chunks->chunk[d];

        all *= (size_t)(left < chunks->chunk[d] ? left : chunks->chunk[d]);
    }
    return all;
}

/* ---- filling an extent ----------------------------------------------------
 */

/* Read the stored bytes by pread. */
static err_code_t fill_pread(const hdf5io_chunks_t *chunks, int fd,
                             const chunk_place_t *place, uint64_t row,
                             unsigned char *out, err_t *err)
{
    size_t done = 0;

    while (done < place->bytes) {
        const ssize_t got = pread(fd, out + done, place->bytes - done,
                                  (off_t)(place->at + done));
        const int number = errno;

        if (got < 0 && number == EINTR)
            continue;
        if (got < 0) {
            err_set(err, ERR_IO,
                    "cannot read %s at byte %" PRIu64 ", %s from row %" PRIu64
                    ": %s",
                    chunks->file, place->at + done, chunks->path, row,
                    strerror(number));
            errno = number;
            return ERR_IO;
        }
        if (got == 0)
            return err_set(err, ERR_DATA,
                           "%s is truncated: it ends before byte %" PRIu64
                           ", within %s from row %" PRIu64 ": copy it again",
                           chunks->file, place->at + place->bytes, chunks->path,
                           row);
        done += (size_t)got;
    }
    return ERR_OK;
}

/* Let HDF5 read the stored bytes. */
static err_code_t fill_h5(const hdf5io_chunks_t *chunks, hid_t dataset,
                          const hsize_t *grid, filter_buffer_t *out,
                          uint32_t *mask, err_t *err)
{
    hsize_t offset[H5S_MAX_RANK], bytes = 0;
    err_code_t rc = ERR_OK;
    int number;

    for (int d = 0; d < chunks->ndim; d++)
        offset[d] = grid[d] * chunks->chunk[d];
    h5_lock();
    if (H5Dget_chunk_storage_size(dataset, offset, &bytes) < 0 ||
        (bytes > 0 && bytes <= out->room &&
         H5Dread_chunk(dataset, H5P_DEFAULT, offset, mask, out->data) < 0))
        rc = h5_err_set(err, ERR_DATA, "%s: cannot read %s from row %" PRIu64,
                        chunks->file, chunks->path, chunk_row(chunks, grid));
    else if (bytes == 0 || bytes > out->room)
        rc = err_set(err, ERR_DATA,
                     "%s: cannot read %s from row %" PRIu64
                     " on: the chunk has %" PRIu64
                     " bytes, at most %zu are expected",
                     chunks->file, chunks->path, chunk_row(chunks, grid),
                     (uint64_t)bytes, out->room);
    number = errno;
    h5_unlock();
    errno = number;
    out->bytes = (size_t)bytes;
    return rc;
}

/* hdf5io_filter_decode, counted in the pool. */
static const char *fill_decode(const hdf5io_chunks_t *chunks, uint32_t mask,
                               filter_buffer_t *stored,
                               filter_buffer_t *decoded)
{
    const size_t bytes = stored->bytes;
    const double begin = clock_now();
    const char *wrong = hdf5io_filter_decode(&chunks->pipe, mask, chunks->bytes,
                                             stored, decoded);

    hdf5io_pool_count(chunks->pool, bytes, clock_now() - begin);
    return wrong;
}

err_code_t hdf5io_chunks_fill(const hdf5io_chunks_t *chunks,
                              const chunks_from_t *from, uint64_t number,
                              const hsize_t *grid, pool_extent_t *extent,
                              err_t *err)
{
    const size_t room = hdf5io_filter_room(chunks->bytes);
    const uint64_t row = chunk_row(chunks, grid);
    filter_buffer_t stored = {.room = room}, decoded = stored;
    const char *wrong = NULL;
    pool_extent_t *raw;
    uint32_t mask = 0;
    double begin;
    err_code_t rc;
    bool fill;

    rc = hdf5io_pool_take(chunks->pool, POOL_NOBODY, 0, room, &raw, &fill, err);
    if (rc != ERR_OK)
        return rc;
    stored.data = hdf5io_pool_bytes(raw);
    decoded.data = hdf5io_pool_bytes(extent);
    errno = 0;
    if (chunks->places == NULL) {
        rc = fill_h5(chunks, from->dataset, grid, &stored, &mask, err);
    } else {
        mask = chunks->places[number].mask;
        stored.bytes = chunks->places[number].bytes;
        if (slow_doubts(from->slow))
            hdf5io_slow_look(from->slow, from->fd, chunks->places[number].at,
                             stored.bytes);
        begin = clock_now();
        rc = fill_pread(chunks, from->fd, &chunks->places[number], row,
                        stored.data, err);
        slow_note(from->slow, stored.bytes, clock_now() - begin);
    }
    if (rc == ERR_OK)
        wrong = fill_decode(chunks, mask, &stored, &decoded);
    if (wrong != NULL)
        rc = err_set(err, ERR_DATA,
                     "%s: cannot read %s from row %" PRIu64
                     " on: the chunk is damaged, %s: copy the file again",
                     chunks->file, chunks->path, row, wrong);
    if (decoded.data != hdf5io_pool_bytes(extent))
        hdf5io_pool_exchange(raw, extent);
    hdf5io_pool_give(chunks->pool, raw, 0, 0);
    return rc;
}

/* ---- copying --------------------------------------------------------------
 */

/* The common part of a block and a chunk. Distances and lengths are in numbers;
 * the last dimension is contiguous in both. */
typedef struct copy_part {
    int ndim;
    size_t count[H5S_MAX_RANK];
    size_t from[H5S_MAX_RANK], to[H5S_MAX_RANK]; /* distance of neighbours */
    size_t from_first, to_first;
} copy_part_t;

static void copy_part_set(const hdf5io_chunks_t *chunks, const hsize_t *grid,
                          const chunks_block_t *block, copy_part_t *out)
{
    size_t from = 1, to = 1;

    out->ndim = chunks->ndim;
    out->from_first = out->to_first = 0;
    for (int d = chunks->ndim - 1; d >= 0; d--) {
        const hsize_t chunk = grid[d] * chunks->chunk[d];
        const hsize_t end = block->start[d] + block->count[d];
        const hsize_t first = chunk > block->start[d] ? chunk : block->start[d];
        const hsize_t last =
            chunk + chunks->chunk[d] < end ? chunk + chunks->chunk[d] : end;

        check(first < last, "a chunk outside of the block, dimension %d", d);
        out->count[d] = (size_t)(last - first);
        out->from[d] = from;
        out->to[d] = to;
        out->from_first += (size_t)(first - chunk) * from;
        out->to_first += (size_t)(first - block->start[d]) * to;
        from *= (size_t)chunks->chunk[d];
        to *= (size_t)block->count[d];
    }
}

/* Join the last dimensions as long as they are contiguous in both. */
static void copy_part_join(copy_part_t *part)
{
    int d = part->ndim - 1;

    while (d > 0 && part->from[d - 1] == part->count[d] &&
           part->to[d - 1] == part->count[d]) {
        part->count[d - 1] *= part->count[d];
        part->from[d - 1] = part->to[d - 1] = 1;
        d--;
    }
    part->ndim = d + 1;
}

static void copy_part(const copy_part_t *part, size_t number_bytes,
                      const unsigned char *from, unsigned char *to)
{
    const int last = part->ndim - 1;
    size_t at[H5S_MAX_RANK] = {0};
    int d;

    from += part->from_first * number_bytes;
    to += part->to_first * number_bytes;
    do {
        memcpy(to, from, part->count[last] * number_bytes);
        d = last;
        while (d-- > 0) {
            from += part->from[d] * number_bytes;
            to += part->to[d] * number_bytes;
            if (++at[d] < part->count[d])
                break;
            from -= part->count[d] * part->from[d] * number_bytes;
            to -= part->count[d] * part->to[d] * number_bytes;
            at[d] = 0;
        }
    } while (d >= 0);
}

/* ---- reading --------------------------------------------------------------
 */

static err_code_t read_chunk(hdf5io_chunks_t *chunks, const chunks_from_t *from,
                             const chunks_block_t *block, const hsize_t *grid,
                             unsigned char *out, err_t *err)
{
    copy_part_t part = {0};
    const uint64_t number = hdf5io_chunks_number(chunks, grid);
    pool_extent_t *extent;
    size_t used = 0;
    bool fill = false;
    err_code_t rc;
    int reason;

    rc = hdf5io_pool_take(chunks->pool, chunks->owner, number,
                          hdf5io_filter_room(chunks->bytes), &extent, &fill,
                          err);
    if (rc != ERR_OK)
        return rc;
    if (fill) {
        rc = hdf5io_chunks_fill(chunks, from, number, grid, extent, err);
        hdf5io_pool_filled(chunks->pool, extent, rc == ERR_OK);
    }
    reason = errno;
    if (rc == ERR_OK) {
        copy_part_set(chunks, grid, block, &part);
        used = chunks->number_bytes;
        for (int d = 0; d < chunks->ndim; d++)
            used *= part.count[d];
        copy_part_join(&part);
        copy_part(&part, chunks->number_bytes, hdf5io_pool_bytes(extent), out);
    }
    hdf5io_pool_give(chunks->pool, extent, used, chunk_all(chunks, grid));
    errno = reason;
    return rc;
}

/* The byte of the file at which row [row] begins. The chunks have no filters.
 */
static uint64_t plain_at(const hdf5io_chunks_t *chunks, hsize_t row)
{
    return chunks->places[row / chunks->chunk[0]].at +
           row % chunks->chunk[0] * chunks->row_bytes;
}

bool hdf5io_chunks_place(const hdf5io_chunks_t *chunks, hsize_t row,
                         uint64_t *at)
{
    if (chunks->row_bytes < CHUNK_ROW_LEAST)
        return false;
    *at = plain_at(chunks, row);
    return true;
}

bool hdf5io_chunks_plain(const hdf5io_chunks_t *chunks,
                         const chunks_block_t *block)
{
    for (int d = 1; d < chunks->ndim; d++)
        if (block->count[d] != chunks->dims[d])
            return false;
    return chunks->row_bytes > 0 &&
           block->count[0] >= (CHUNK_ROW_LEAST - 1) / chunks->row_bytes + 1;
}

/* The bytes from [row] on, up to [end] or up to a chunk that is stored
 * elsewhere. */
static chunk_place_t plain_piece(const hdf5io_chunks_t *chunks, hsize_t row,
                                 hsize_t end)
{
    hsize_t number = row / chunks->chunk[0];
    hsize_t next = (number + 1) * chunks->chunk[0];
    hsize_t last = next < end ? next : end;
    const uint64_t at = plain_at(chunks, row);
    uint64_t bytes = (last - row) * chunks->row_bytes;

    while (last < end && bytes < PLAIN_MOST &&
           chunks->places[++number].at == at + bytes) {
        next += chunks->chunk[0];
        row = last;
        last = next < end ? next : end;
        bytes += (last - row) * chunks->row_bytes;
    }
    return (chunk_place_t){.at = at, .bytes = (uint32_t)bytes};
}

/* Read rows of chunks that are stored without filters. */
static err_code_t plain_read(const hdf5io_chunks_t *chunks, int fd,
                             const chunks_block_t *block, unsigned char *out,
                             err_t *err)
{
    const hsize_t end = block->start[0] + block->count[0];
    hsize_t row = block->start[0];
    err_code_t rc = ERR_OK;

    while (row < end && rc == ERR_OK) {
        const chunk_place_t piece = plain_piece(chunks, row, end);

        rc = fill_pread(chunks, fd, &piece, row, out, err);
        out += piece.bytes;
        row += piece.bytes / chunks->row_bytes;
    }
    /* The caller counts the bytes of long rows. */
    if (rc == ERR_OK && chunks->row_bytes < CHUNK_ROW_LEAST)
        hdf5io_pool_count(chunks->pool,
                          (size_t)block->count[0] * chunks->row_bytes, 0);
    return rc;
}

err_code_t hdf5io_chunks_read(hdf5io_chunks_t *chunks,
                              const chunks_from_t *from,
                              const chunks_block_t *block, void *out,
                              err_t *err)
{
    hsize_t grid[H5S_MAX_RANK];
    chunks_box_t box;
    err_code_t rc = ERR_OK;

    if (!hdf5io_chunks_box(chunks, block, &box))
        return ERR_OK;
    if (hdf5io_chunks_plain(chunks, block))
        return plain_read(chunks, from->fd, block, out, err);
    memcpy(grid, box.first, sizeof grid);
    do
        rc = read_chunk(chunks, from, block, grid, out, err);
    while (rc == ERR_OK && hdf5io_chunks_next(chunks, &box, grid));
    return rc;
}
