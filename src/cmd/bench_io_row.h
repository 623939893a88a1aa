/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A row of cddp-bench io: measures, in turns, what cddp does and the limit of
 * it, and prints both. */
#ifndef CDDP_CMD_BENCH_IO_ROW_H
#define CDDP_CMD_BENCH_IO_ROW_H

#include <stddef.h>

#include "cmd/bench_io_args.h"

typedef struct bench_io_row {
    const char *layout; /* "gzip" */
    const char *cache;  /* "warm", "cold" */
    const char *limit;  /* "pread": what the limit is */
    size_t bytes;       /* that are moved in the times of [ours] and [limit] */
    void *context;
    /* Measure once, and set *seconds. */
    err_code_t (*ours)(void *context, double *seconds, err_t *err);
    err_code_t (*limit_of)(void *context, double *seconds, err_t *err);
} bench_io_row_t;

void bench_io_header_print(bool csv);

/* Measure args->rounds times each, and print the row. The first error of a
 * measurement is returned. */
err_code_t bench_io_row_run(const bench_io_args_t *args,
                            const bench_io_row_t *row, err_t *err);

#endif
