/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reading rows. Without MPI each run of rows is one request: a pread if the
 * file offset is known, a block of chunks that are decoded here, or one H5Dread
 * of a plain block, which HDF5 serves chunk by chunk (for a union of blocks it
 * works element by element). The lock is held for one run at a time, so that a
 * checkpoint can take it in between. With MPI-IO all runs are one collective
 * request, since ranks have different numbers of runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "hdf5io/column.h"
#include "hdf5io/h5.h"

static err_code_t column_read_located(const hdf5io_column_t *column, int fd,
                                      const column_run_t *run, void *out,
                                      err_t *err)
{
    uint64_t at = column->offset + (uint64_t)run->row * column->row_bytes;
    size_t left = (size_t)run->count * column->row_bytes;
    char *next = out;

    while (left > 0) {
        ssize_t got = pread(fd, next, left, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            const int number = errno;

            err_set(err, ERR_IO, "cannot read %s at byte %" PRIu64 ": %s",
                    hdf5io_column_source(column), at, strerror(number));
            errno = number;
            return ERR_IO;
        }
        if (got == 0)
            return err_set(err, ERR_DATA,
                           "%s was truncated while it was read: it ends "
                           "before byte %" PRIu64 ", within %s",
                           hdf5io_column_source(column), at, column->path);
        next += got;
        at += (uint64_t)got;
        left -= (size_t)got;
    }
    return ERR_OK;
}

/* Extent of [rows] rows in HDF5's dataset; returns the number of dimensions. */
static int column_extent(const hdf5io_column_t *column, int64_t rows,
                         hsize_t extent[H5S_MAX_RANK])
{
    if (column->stream > 0) {
        extent[0] = (hsize_t)(rows * column->stream);
        return 1;
    }
    if (column->whole) {
        memcpy(extent, column->dims, (size_t)column->ndim * sizeof extent[0]);
        return column->ndim;
    }
    extent[0] = (hsize_t)rows;
    memcpy(extent + 1, column->dims, (size_t)column->ndim * sizeof extent[0]);
    return column->ndim + 1;
}

/* Select the rows of all runs in [space]. */
static herr_t column_select(const hdf5io_column_t *column,
                            const column_run_t *runs, int64_t count,
                            hid_t space)
{
    hsize_t start[H5S_MAX_RANK] = {0}, extent[H5S_MAX_RANK];
    herr_t status = 0;

    if (count == 0)
        return H5Sselect_none(space);
    if (column->whole)
        return H5Sselect_all(space);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        start[0] = (hsize_t)runs[i].row;
        if (column->stream > 0)
            start[0] =
                start[0] * (hsize_t)column->stream + (hsize_t)column->skip;
        column_extent(column, runs[i].count, extent);
        status =
            H5Sselect_hyperslab(space, i == 0 ? H5S_SELECT_SET : H5S_SELECT_OR,
                                start, NULL, extent, NULL);
    }
    return status;
}

/* A memory space for the rows of all runs. */
static hid_t column_memory_space(const hdf5io_column_t *column,
                                 const column_run_t *runs, int64_t count)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    int64_t rows = count == 0 ? 1 : 0;
    hid_t space;

    for (int64_t i = 0; i < count; i++)
        rows += runs[i].count;
    space = H5Screate_simple(column_extent(column, rows, extent), extent, NULL);
    if (space >= 0 && count == 0)
        H5Sselect_none(space);
    return space;
}

err_code_t hdf5io_column_read_space(const hdf5io_column_t *column,
                                    const column_spaces_t *spaces,
                                    hid_t transfer, void *out, err_t *err)
{
    err_code_t rc = ERR_OK;
    int number;

    h5_lock_check();
    if (spaces->from < 0 || spaces->to < 0 ||
        H5Dread(column->dataset, column->memory, spaces->to, spaces->from,
                transfer, out) < 0)
        rc = h5_err_set(err, ERR_DATA, "%s: cannot read %s from row %" PRId64,
                        column->file, column->path, spaces->row);
    number = errno;
    if (spaces->to >= 0)
        H5Sclose(spaces->to);
    if (spaces->from >= 0)
        H5Sclose(spaces->from);
    errno = number;
    return rc;
}

static err_code_t column_read_h5(const hdf5io_column_t *column,
                                 const column_rows_t *rows, void *out,
                                 err_t *err)
{
    column_spaces_t spaces = {.row = rows->count > 0 ? rows->runs[0].row : 0};
    err_code_t rc;

    h5_lock();
    spaces.from = H5Dget_space(column->dataset);
    spaces.to = column_memory_space(column, rows->runs, rows->count);
    if (spaces.from >= 0 &&
        column_select(column, rows->runs, rows->count, spaces.from) < 0) {
        H5Sclose(spaces.from);
        spaces.from = H5I_INVALID_HID;
    }
    rc = hdf5io_column_read_space(column, &spaces, rows->transfer, out, err);
    h5_unlock();
    return rc;
}

/* The numbers of [run] in a dataset with chunks. */
static chunks_block_t column_block(const hdf5io_column_t *column,
                                   const column_run_t *run)
{
    chunks_block_t block = {.start = {(hsize_t)run->row}};

    if (column->stream > 0)
        block.start[0] =
            block.start[0] * (hsize_t)column->stream + (hsize_t)column->skip;
    column_extent(column, run->count, block.count);
    return block;
}

/* Read one run of rows, not collectively. */
static err_code_t column_read_run(const hdf5io_column_t *column,
                                  const chunks_from_t *from,
                                  const column_run_t *run, void *out,
                                  err_t *err)
{
    const column_rows_t one = {.runs = run, .count = 1};

    if (column->located)
        return column_read_located(column, from->fd, run, out, err);
    if (column->chunks != NULL) {
        const chunks_block_t block = column_block(column, run);

        return hdf5io_chunks_read(column->chunks, from, &block, out, err);
    }
    return column_read_h5(column, &one, out, err);
}

/* Where the column's bytes are read from. */
static chunks_from_t column_from(const hdf5io_column_t *column,
                                 const column_rows_t *rows)
{
    return (chunks_from_t){.fd = column->fd >= 0 ? column->fd : rows->fd,
                           .dataset = column->dataset,
                           .slow = rows->slow};
}

bool hdf5io_column_ahead(const hdf5io_column_t *column,
                         const column_rows_t *from, int64_t row, uint64_t batch)
{
    const chunks_from_t where = column_from(column, from);
    chunks_block_t block;

    if (column->chunks == NULL)
        return true;
    block = column_block(column, &(column_run_t){row, 1});
    return hdf5io_chunks_ahead(column->chunks, &where, &block, batch);
}

/* Set *at to the byte of the file at which [run] begins. False: reads do not
 * take the bytes of the column straight from the file. */
static bool column_place(const hdf5io_column_t *column, const column_run_t *run,
                         uint64_t *at)
{
    if (column->chunks != NULL)
        return hdf5io_chunks_place(column->chunks, (hsize_t)run->row, at);
    *at = column->offset + (uint64_t)run->row * column->row_bytes;
    return column->located;
}

void hdf5io_column_tell(const hdf5io_column_t *column, int fd,
                        const column_run_t *run)
{
    uint64_t at;

    if (column->fd >= 0)
        fd = column->fd;
    if (column_place(column, run, &at)) {
        hdf5io_slow_tell(fd, at, (uint64_t)run->count * column->row_bytes);
    } else if (column->chunks != NULL) {
        const chunks_block_t block = column_block(column, run);

        hdf5io_chunks_tell(column->chunks, fd, &block);
    }
}

/* If an earlier read took long, ask the system whether the page cache holds the
 * first of the next [count] runs. If not, tell the system of all these runs, so
 * that it reads all of them at the same time, and return true. */
static bool column_look(const hdf5io_column_t *column,
                        const chunks_from_t *from, const column_run_t *runs,
                        int64_t count)
{
    const int number = errno;
    uint64_t at;

    if (!slow_doubts(from->slow) || !column_place(column, runs, &at) ||
        !hdf5io_slow_look(from->slow, from->fd, at,
                          (uint64_t)runs->count * column->row_bytes))
        return false;
    for (int64_t i = 0; i < count; i++)
        hdf5io_column_tell(column, from->fd, &runs[i]);
    errno = number;
    return true;
}

err_code_t hdf5io_column_read(const hdf5io_column_t *column,
                              const column_rows_t *rows, void *out, err_t *err)
{
    const chunks_from_t from = column_from(column, rows);
    const bool direct = column->located || column->way == HDF5IO_WAY_ROWS;
    bool told = false;
    err_code_t rc = ERR_OK;
    char *next = out;
    double begin;

    if (column->collective && rows->transfer != H5P_DEFAULT)
        return column_read_h5(column, rows, out, err);
    check(hdf5io_column_apart(column) ? from.fd >= 0 : column->dataset >= 0,
          "%s is read while it is closed: located %d, descriptor %d, dataset "
          "%lld",
          column->path, column->located, from.fd, (long long)column->dataset);
    for (int64_t i = 0; i < rows->count && rc == ERR_OK; i++) {
        const column_run_t *run = &rows->runs[i];

        check(run->count > 0 && run->row >= 0 &&
                  (i == 0 || run->row >= run[-1].row + run[-1].count),
              "%s: run %lld has %lld rows from %lld on", column->path,
              (long long)i, (long long)run->count, (long long)run->row);
        if (rows->slots != NULL)
            next = (char *)out + (size_t)rows->slots[i] * column->row_bytes;
        /* In other ways, a read takes time for more than storage. */
        if (direct && !told)
            told = column_look(column, &from, run, rows->count - i);
        begin = clock_now();
        rc = column_read_run(column, &from, run, next, err);
        next += (size_t)run->count * column->row_bytes;
        if (direct)
            slow_note(rows->slow, (size_t)run->count * column->row_bytes,
                      clock_now() - begin);
    }
    return rc;
}
