/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-bench allreduce, and sizes on command lines. */
#ifndef CDDP_CMD_BENCH_ARGS_H
#define CDDP_CMD_BENCH_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define BENCH_ROUNDS_MAX 2000

typedef struct bench_args {
    bool help, version, csv;
    bool plain; /* --plain: buffers in ordinary memory instead of an arena */
    int local;  /* N of --local N; 0: not given */
    /* number of timed calls for each size; 0: depends on the size */
    int rounds;
    /* smallest and largest size in bytes, multiples of 4 */
    size_t smallest, largest;
    /* --device: index in dev_choices; [on_device]: another one than "cpu" */
    int device;
    bool on_device;
    const char *backend; /* value of --backend; NULL: not given */
    const char *table;   /* value of --table; NULL: not given */
    const char *tune;    /* value of --tune; NULL: not given */
} bench_args_t;

/* Parse [argv]; texts in the result point into it. ERR_USAGE. */
err_code_t bench_args_parse(int argc, char **argv, bench_args_t *out,
                            err_t *err);

/* Read a size such as "64K" at *text into *out, in bytes, and move *text after
 * it. False if it is not a size, above 64G, or not a multiple of 4. */
bool bench_size_take(const char **text, size_t *out);

/* The number of timed calls for a size of [bytes] bytes. */
size_t bench_args_rounds(const bench_args_t *args, size_t bytes);

/* The size to measure after [bytes]: four times as much, at most the largest; 0
 * after the largest. */
size_t bench_args_next(const bench_args_t *args, size_t bytes);

extern const char bench_args_help[];

#endif
