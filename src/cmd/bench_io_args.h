/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-bench io. */
#ifndef CDDP_CMD_BENCH_IO_ARGS_H
#define CDDP_CMD_BENCH_IO_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define BENCH_IO_THREADS_MAX 256
#define BENCH_IO_ROUNDS_MAX 1000

typedef enum bench_io_what {
    BENCH_IO_READ,  /* samples of a dataset */
    BENCH_IO_WRITE, /* a checkpoint is written */
    BENCH_IO_LOAD,  /* a checkpoint is read */
    BENCH_IO_WHATS
} bench_io_what_t;

/* How samples are stored in the file. */
typedef enum bench_io_layout {
    BENCH_IO_CONTIGUOUS,
    BENCH_IO_ORDERED, /* contiguous, read from the first sample to the last */
    BENCH_IO_FLOAT16, /* contiguous numbers of two bytes */
    BENCH_IO_CHUNKED,
    BENCH_IO_GZIP, /* chunks, with shuffle and deflate */
    BENCH_IO_LAYOUTS
} bench_io_layout_t;

typedef struct bench_io_args {
    bool help, csv;
    bench_io_what_t what;
    /* of reads; BENCH_IO_LAYOUTS: each of them in turn */
    bench_io_layout_t layout;
    int threads, rounds;
    size_t bytes;          /* of samples, or of a checkpoint */
    const char *directory; /* exists; NULL: a temporary one is made */
} bench_io_args_t;

/* Parse [argv], which begins with the word "io"; texts in the result point into
 * it. ERR_USAGE. */
err_code_t bench_io_args_parse(int argc, char **argv, bench_io_args_t *out,
                               err_t *err);

/* "read", "write", "load"; "contiguous", "ordered", ... */
const char *bench_io_what_name(bench_io_what_t what);
const char *bench_io_layout_name(bench_io_layout_t layout);

extern const char bench_io_args_help[];

#endif
