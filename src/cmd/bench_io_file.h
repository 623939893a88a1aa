/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The HDF5 file whose samples cddp-bench io reads: dataset /x, float32 or
 * float16 [rows, BENCH_IO_ELEMS], and dataset /y, int32 [rows], which holds the
 * numbers of the rows. */
#ifndef CDDP_CMD_BENCH_IO_FILE_H
#define CDDP_CMD_BENCH_IO_FILE_H

#include <stdint.h>

#include "cmd/bench_io_args.h"

#define BENCH_IO_ELEMS 4096
/* Rows of a chunk of /x, which has 1 MiB. */
#define BENCH_IO_CHUNK_ROWS 64
/* Bytes of a stored row, /x and /y together. */
size_t bench_io_row_bytes(bench_io_layout_t layout);

/* Number [i] of row [row] of /x: a whole number from 0 to 255 that looks
 * random, so that gzip makes the samples about three times smaller. */
float bench_io_value(int64_t row, int64_t i);

/* Write the file [path], durably. ERR_IO, ERR_MEMORY. */
err_code_t bench_io_file_write(const char *path, bench_io_layout_t layout,
                               int64_t rows, err_t *err);

/* Some compressed chunks of /x in memory. */
typedef struct bench_io_chunks bench_io_chunks_t;

/* Read the first chunks of the gzip file [path] with [rows] rows, at most 64.
 * ERR_DATA, ERR_MEMORY. */
err_code_t bench_io_chunks_open(const char *path, int64_t rows,
                                bench_io_chunks_t **out, err_t *err);
void bench_io_chunks_close(bench_io_chunks_t *chunks); /* NULL allowed */

/* Decompress them with zlib in this thread: *bytes_s is the rate in
 * decompressed bytes/s. Shuffle is not undone. ERR_DATA. */
err_code_t bench_io_chunks_inflate(const bench_io_chunks_t *chunks,
                                   double *bytes_s, err_t *err);

#endif
