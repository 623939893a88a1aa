/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-bench step. */
#ifndef CDDP_CMD_BENCH_STEP_ARGS_H
#define CDDP_CMD_BENCH_STEP_ARGS_H

#include <stdbool.h>

#include "base/err.h"
#include "cmd/args.h"

typedef enum bench_scaling {
    BENCH_SCALING_NONE,
    BENCH_SCALING_WEAK,  /* the batch of the run file for each rank */
    BENCH_SCALING_STRONG /* that batch shared by all ranks */
} bench_scaling_t;

typedef struct bench_step_args {
    bool help, csv, paced;
    int local;          /* ranks of --local N, 0: not given */
    int steps, warm_up; /* timed; before them */
    bench_scaling_t scaling;
    const char *record; /* NULL: not given */
    cmd_sets_t sets;
    const char *run_file;
} bench_step_args_t;

/* Parse [argv] from the word "step" on, whose texts the result points into.
 * ERR_USAGE. */
err_code_t bench_step_args_parse(int argc, char **argv, bench_step_args_t *out,
                                 err_t *err);

/* The number of ranks of the row after one with [ranks] of --scaling: twice as
 * many, at most all of them; 0 at the end. */
int bench_step_args_next(const bench_step_args_t *args, int ranks);

extern const char bench_step_args_help[];

#endif
