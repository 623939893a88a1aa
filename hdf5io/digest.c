/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A piece is a block of consecutive numbers of the flat dataset: the last
 * dimensions are complete, one dimension is partial, and the dimensions before
 * have length 1. So a piece is one hyperslab, and one pread if the file offset
 * is known. Pieces start in evenly spaced rows, including the first and the
 * last row; their position within a row is given by a fixed formula.
 */
#include "hdf5io/digest.h"

#include <errno.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/h5.h"

#define DIGEST_PIECE_BYTES ((size_t)4096)
#define DIGEST_PIECES_MIN 4
#define DIGEST_PIECES_MAX 16
/* Pieces of a dataset, divided by its number of shards. */
#define DIGEST_PIECES_ALL 256
/* Bytes per read of a full digest; more if one row is larger. */
#define DIGEST_STAGE_BYTES ((size_t)4 << 20)

/* A block: [count] numbers from [start] on in each dimension; dimension 0
 * counts rows. */
typedef struct digest_block {
    int ndim;
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    int64_t flat, elems; /* its first number and its size in the flat dataset */
} digest_block_t;

int64_t hdf5io_dataset_shard_samples(const hdf5io_dataset_t *dataset, int shard)
{
    return dataset->shards[shard].rows;
}

const char *hdf5io_dataset_field_path(const hdf5io_dataset_t *dataset,
                                      int field)
{
    return dataset->fields[field].path;
}

size_t hdf5io_dataset_row_bytes(const hdf5io_dataset_t *dataset, int field)
{
    return hdf5io_dataset_columns(dataset, &dataset->shards[0])[field]
        .row_bytes;
}

uint64_t hdf5io_dataset_place(const hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();
    uint64_t place;

    for (int s = 0; s < dataset->count; s++)
        hash_state_add(state, &dataset->shards[s].place,
                       sizeof dataset->shards[s].place);
    place = hash_state_value(state);
    hash_state_free(state);
    return place;
}

uint64_t hdf5io_dataset_shape(const hdf5io_dataset_t *dataset, int shard)
{
    const hdf5io_shard_t *from = &dataset->shards[shard];
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, from);
    hash_state_t *state = hash_state_open();
    uint64_t shape;

    hash_state_add(state, &from->rows, sizeof from->rows);
    for (int k = 0; k < from->count; k++) {
        const hdf5io_column_t *column = &columns[k];
        const int32_t numbers[] = {(int32_t)column->type.kind,
                                   column->type.swap ? 1 : 0, column->ndim};

        hash_state_add(state, numbers, sizeof numbers);
        hash_state_add(state, column->dims,
                       (size_t)column->ndim * sizeof column->dims[0]);
    }
    shape = hash_state_value(state);
    hash_state_free(state);
    return shape;
}

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

static err_code_t digest_block_h5(const hdf5io_column_t *column,
                                  const digest_block_t *block, void *out,
                                  err_t *err)
{
    column_spaces_t spaces = {.row = (int64_t)block->start[0]};
    err_code_t rc;

    h5_lock();
    spaces.from = H5Dget_space(column->dataset);
    spaces.to = H5Screate_simple(block->ndim, block->count, NULL);
    if (spaces.from >= 0 &&
        H5Sselect_hyperslab(spaces.from, H5S_SELECT_SET, block->start, NULL,
                            block->count, NULL) < 0) {
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
    const column_rows_t rows = {&run, 1, fd, H5P_DEFAULT};
    hdf5io_column_t flat = *column;

    flat.ndim = 0;
    flat.elems = 1;
    flat.row_bytes = hdf5io_convert_bytes(column->type);
    flat.stream = column->stream > 0 ? 1 : 0;
    flat.collective = false;
    return hdf5io_column_read(&flat, &rows, out, err);
}

static err_code_t digest_sample(const hdf5io_dataset_t *dataset,
                                const hdf5io_shard_t *shard, int field,
                                hash_state_t *state, err_t *err)
{
    const hdf5io_column_t *column = &shard->columns[field];
    const bool flat = column->located || column->stream > 0;
    int pieces = DIGEST_PIECES_ALL / dataset->count;
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
                  : digest_block_h5(column, &block, stage, err);
        if (rc == ERR_OK)
            hash_state_add(state, stage,
                           (size_t)block.elems *
                               hdf5io_convert_bytes(column->type));
    }
    return rc;
}

static err_code_t digest_all(const hdf5io_shard_t *shard, int field,
                             const hdf5io_digest_how_t *how,
                             hash_state_t *state, err_t *err)
{
    hdf5io_column_t column = shard->columns[field];
    const int64_t block = column.row_bytes < DIGEST_STAGE_BYTES
                              ? (int64_t)(DIGEST_STAGE_BYTES / column.row_bytes)
                              : 1;
    void *stage = NULL;
    err_code_t rc = mem_alloc((size_t)block * column.row_bytes,
                              "looking at the data", &stage, err);
    int number;

    column.collective = false;
    for (int64_t row = 0; row < column.rows && rc == ERR_OK; row += block) {
        const int64_t left = column.rows - row;
        const column_run_t run = {.row = row,
                                  .count = left < block ? left : block};
        const column_rows_t rows = {&run, 1, shard->fd, H5P_DEFAULT};
        const size_t bytes = (size_t)run.count * column.row_bytes;

        rc = hdf5io_column_read(&column, &rows, stage, err);
        if (rc != ERR_OK)
            break;
        hash_state_add(state, stage, bytes);
        if (how->alive != NULL)
            how->alive(how->context, (int64_t)bytes);
    }
    number = errno;
    mem_free(stage);
    errno = number;
    return rc;
}

err_code_t hdf5io_shard_digest(const hdf5io_dataset_t *dataset,
                               const hdf5io_shard_t *shard, int field,
                               uint64_t *out, err_t *err)
{
    hash_state_t *state = hash_state_open();
    err_code_t rc = ERR_OK;
    int number;

    if (shard->rows > 0)
        rc = digest_sample(dataset, shard, field, state, err);
    number = errno;
    if (rc == ERR_OK)
        *out = hash_state_value(state);
    hash_state_free(state);
    errno = number;
    return rc;
}

/* Get the digest of a sample from the catalogue. False: it is not known, or all
 * numbers are asked for. */
static bool digest_known(const hdf5io_dataset_t *dataset, int shard, int field,
                         const hdf5io_digest_how_t *how, uint64_t *out)
{
    catalogue_facts_t facts;

    if (how->full || !hdf5io_catalogue_get(dataset->catalogue, shard, &facts) ||
        !facts.digested)
        return false;
    *out = facts.digests[field];
    return true;
}

/* Arguments and result of digest_work. */
typedef struct digest_call {
    const hdf5io_dataset_t *dataset;
    const hdf5io_shard_t *shard;
    int field;
    const hdf5io_digest_how_t *how;
    uint64_t value;
} digest_call_t;

static err_code_t digest_work(void *context, err_t *err)
{
    digest_call_t *call = context;
    const bool twice =
        call->shard->columns[call->field].stream > 0 && call->field > 0;
    hash_state_t *state;
    err_code_t rc;
    int number;

    if (!call->how->full || twice)
        return hdf5io_shard_digest(call->dataset, call->shard, call->field,
                                   &call->value, err);
    state = hash_state_open();
    rc = digest_all(call->shard, call->field, call->how, state, err);
    number = errno;
    call->value = hash_state_value(state);
    hash_state_free(state);
    errno = number;
    return rc;
}

err_code_t hdf5io_dataset_digest(hdf5io_dataset_t *dataset, int shard,
                                 int field, const hdf5io_digest_how_t *how,
                                 uint64_t *out, err_t *err)
{
    digest_call_t call = {.dataset = dataset,
                          .shard = &dataset->shards[shard],
                          .field = field,
                          .how = how,
                          .value = hash_bytes(NULL, 0)};
    err_code_t rc = ERR_OK;

    if (digest_known(dataset, shard, field, how, out))
        return ERR_OK;
    if (call.shard->rows > 0)
        rc = hdf5io_dataset_use(dataset, &dataset->shards[shard], digest_work,
                                &call, err);
    if (rc == ERR_OK)
        *out = call.value;
    return rc;
}
