/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Plain reads and writes of files by several threads, which are the limit of
 * what cddp does with files; and the page cache. */
#ifndef CDDP_CMD_BENCH_IO_DISK_H
#define CDDP_CMD_BENCH_IO_DISK_H

#include <stdint.h>

#include "base/crew.h"
#include "base/err.h"

/* Bytes [first, first + bytes) of a file. */
typedef struct bench_io_span {
    const char *path;
    int64_t first, bytes;
    const char *data; /* writes: what is written */
    char *to; /* reads: where the bytes go; NULL: a buffer of the thread */
} bench_io_span_t;

/* Divide the first [bytes] bytes of [path] among [count] spans. */
void bench_io_spans_cut(const char *path, int64_t bytes, bench_io_span_t *spans,
                        int count);

/* Read [count] spans by pread; member m of [crew] reads the spans m, m + size,
 * ... Sets the time without opening the files. ERR_IO, ERR_MEMORY. */
err_code_t bench_io_spans_read(crew_t *crew, const bench_io_span_t *spans,
                               int count, double *seconds, err_t *err);

/* Write the spans to new files by pwrite and fsync them, in the same way;
 * afterwards the files are removed. */
err_code_t bench_io_spans_write(crew_t *crew, const bench_io_span_t *spans,
                                int count, double *seconds, err_t *err);

/* Drop the file [path] from the page cache; *stays is the share of its pages
 * that is still there (0 to 1). ERR_IO, ERR_MEMORY. */
err_code_t bench_io_drop(const char *path, double *stays, err_t *err);

/* Can the page cache be dropped, of which [stays] stayed? If not, says so. */
bool bench_io_dropped(const char *path, double stays);

#endif
