/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-bench. */
#ifndef CDDP_CMD_BENCH_ARGS_H
#define CDDP_CMD_BENCH_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define BENCH_ROUNDS_MAX 2000

typedef struct bench_args {
    bool help, version, csv;
    bool plain; /* --plain: ordinary memory instead of the arena */
    int local;  /* ranks of --local N, 0: not given */
    int rounds; /* calls timed for each size, 0: by size */
    size_t smallest, largest; /* bytes, multiples of 4 */
    const char *backend;      /* of --backend, NULL: not given */
    const char *table;        /* of --table, NULL: not given */
    const char *tune;         /* of --tune, NULL: not given */
} bench_args_t;

/* Parse [argv], whose texts the result points into. ERR_USAGE. */
err_code_t bench_args_parse(int argc, char **argv, bench_args_t *out,
                            err_t *err);

/* The size after [bytes]: four times as much, at most the largest; 0 at the
 * end. */
size_t bench_args_next(const bench_args_t *args, size_t bytes);

extern const char bench_args_help[];

#endif
