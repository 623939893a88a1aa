/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The digest of a sample of the numbers of a column: a hash of some pieces.
 *
 * A piece is a block of consecutive numbers of the flat dataset: the last
 * dimensions are complete, one dimension is partial, and the dimensions before
 * have length 1. So a piece is one hyperslab, and one pread if the file offset
 * is known. Pieces start in evenly spaced rows, including the first and the
 * last row; their position within a row is given by a fixed formula.
 */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"

#define DIGEST_PIECE_BYTES ((size_t)4096)
#define DIGEST_PIECES_MIN 4
#define DIGEST_PIECES_MAX 16
/* Pieces of a dataset, divided by its number of shards. */
#define DIGEST_PIECES_ALL 256

/* A block: [count] numbers from [start] on in each dimension; dimension 0
 * counts rows. */
typedef struct digest_block {
    int ndim;
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    int64_t flat, elems; /* its first number and its size in the flat dataset */
} digest_block_t;

/* A pseudo-random number from two small ones (splitmix64). */
static uint64_t digest_draw(uint64_t piece, uint64_t dim)
{
    uint64_t x = (piece << 8 | dim) * UINT64_C(0x9e3779b97f4a7c15) + 1;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Set the size of a piece along each dimension. */
static void digest_block_size(const hdf5io_column_t *column,
                              digest_block_t *block)
{
    size_t room = DIGEST_PIECE_BYTES / hdf5io_convert_bytes(column->type);

    block->ndim = column->ndim + 1;
    block->elems = 1;
    for (int d = block->ndim - 1; d >= 0; d--) {
        const hsize_t dim =
            d == 0 ? (hsize_t)column->rows : column->dims[d - 1];

        block->count[d] = dim < room ? dim : room;
        block->elems *= (int64_t)block->count[d];
        /* If this dimension is partial, those before have length 1. */
        room = block->count[d] < dim || dim == 0 ? 1 : room / dim;
        if (room == 0)
            room = 1;
    }
}

/* Set the position of piece number [piece] of [pieces]. */
static void digest_block_place(const hdf5io_column_t *column, uint64_t piece,
                               uint64_t pieces, digest_block_t *block)
{
    block->flat = 0;
    for (int d = 0; d < block->ndim; d++) {
        const hsize_t dim =
            d == 0 ? (hsize_t)column->rows : column->dims[d - 1];
        const hsize_t last = dim - block->count[d];

        check(block->count[d] <= dim && piece < pieces,
              "piece %llu of %llu has %llu of %llu numbers along dimension %d",
              (unsigned long long)piece, (unsigned long long)pieces,
              (unsigned long long)block->count[d], (unsigned long long)dim, d);

        block->start[d] = d == 0
                              ? last / (pieces - 1) * piece +
                                    last % (pieces - 1) * piece / (pieces - 1)
                              : digest_draw(piece, (uint64_t)d) % (last + 1);
        block->flat = block->flat * (int64_t)dim + (int64_t)block->start[d];
    }
}

/* Number of dimensions that a block has and the dataset does not have. If the
 * only row is the whole dataset, the block has one more, for the row. */
static int dims_ahead(const hdf5io_column_t *column)
{
    return column->whole ? 1 : 0;
}

static err_code_t digest_block_chunks(const hdf5io_column_t *column, int fd,
                                      const digest_block_t *block, void *out,
                                      err_t *err)
{
    const chunks_from_t from = {.fd = column->fd >= 0 ? column->fd : fd,
                                .dataset = column->dataset};
    const int ahead = dims_ahead(column);
    chunks_block_t numbers = {0};

    memcpy(numbers.start, block->start + ahead,
           (size_t)(block->ndim - ahead) * sizeof numbers.start[0]);
    memcpy(numbers.count, block->count + ahead,
           (size_t)(block->ndim - ahead) * sizeof numbers.count[0]);
    return hdf5io_chunks_read(column->chunks, &from, &numbers, out, err);
}

static err_code_t digest_block_h5(const hdf5io_column_t *column, int fd,
                                  const digest_block_t *block, void *out,
                                  err_t *err)
{
    column_spaces_t spaces = {.row = (int64_t)block->start[0]};
    const int ahead = dims_ahead(column);
    err_code_t rc;

    if (column->chunks != NULL)
        return digest_block_chunks(column, fd, block, out, err);
    h5_lock();
    spaces.from = H5Dget_space(column->dataset);
    spaces.to =
        H5Screate_simple(block->ndim - ahead, block->count + ahead, NULL);
    if (spaces.from >= 0 && block->ndim > ahead &&
        H5Sselect_hyperslab(spaces.from, H5S_SELECT_SET, block->start + ahead,
                            NULL, block->count + ahead, NULL) < 0) {
        H5Sclose(spaces.from);
        spaces.from = H5I_INVALID_HID;
    }
    rc = hdf5io_column_read_space(column, &spaces, H5P_DEFAULT, out, err);
    h5_unlock();
    return rc;
}

/* Read a block that is contiguous in the file, through a column whose rows are
 * single numbers. */
static err_code_t digest_block_flat(const hdf5io_column_t *column, int fd,
                                    const digest_block_t *block, void *out,
                                    err_t *err)
{
    const column_run_t run = {.row = block->flat, .count = block->elems};
    const column_rows_t rows = {.runs = &run, .count = 1, .fd = fd};
    hdf5io_column_t flat = *column;

    flat.ndim = 0;
    flat.elems = 1;
    flat.row_bytes = hdf5io_convert_bytes(column->type);
    flat.stream = column->stream > 0 ? 1 : 0;
    flat.collective = false;
    return hdf5io_column_read(&flat, &rows, out, err);
}

static err_code_t digest_sample(const hdf5io_shard_t *shard, int field,
                                int shards, hash_state_t *state, err_t *err)
{
    const hdf5io_column_t *column = &shard->columns[field];
    const bool flat = column->located || column->stream > 0;
    int pieces = DIGEST_PIECES_ALL / shards;
    char stage[DIGEST_PIECE_BYTES];
    digest_block_t block = {0};
    err_code_t rc = ERR_OK;

    if (pieces < DIGEST_PIECES_MIN)
        pieces = DIGEST_PIECES_MIN;
    if (pieces > DIGEST_PIECES_MAX)
        pieces = DIGEST_PIECES_MAX;
    digest_block_size(column, &block);
    check((size_t)block.elems * hdf5io_convert_bytes(column->type) <=
              sizeof stage,
          "a piece of %lld numbers in %zu bytes", (long long)block.elems,
          sizeof stage);
    if (block.count[0] == (hsize_t)column->rows)
        pieces = block.elems == column->rows * column->elems ? 1 : pieces;
    for (int i = 0; i < pieces && rc == ERR_OK; i++) {
        digest_block_place(column, (uint64_t)i,
                           pieces > 1 ? (uint64_t)pieces : 2, &block);
        rc = flat ? digest_block_flat(column, shard->fd, &block, stage, err)
                  : digest_block_h5(column, shard->fd, &block, stage, err);
        if (rc == ERR_OK)
            hash_state_add(state, stage,
                           (size_t)block.elems *
                               hdf5io_convert_bytes(column->type));
    }
    return rc;
}

err_code_t hdf5io_shard_digest(const hdf5io_shard_t *shard, int field,
                               int shards, uint64_t *out, err_t *err)
{
    hash_state_t *state = hash_state_open();
    err_code_t rc = ERR_OK;
    int number;

    if (shard->rows > 0)
        rc = digest_sample(shard, field, shards, state, err);
    number = errno;
    if (rc == ERR_OK)
        *out = hash_state_value(state);
    hash_state_free(state);
    errno = number;
    return rc;
}
