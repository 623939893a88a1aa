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
    BENCH_SCALING_WEAK,  /* each rank has the batch of the run file */
    BENCH_SCALING_STRONG /* all ranks share the batch of the run file */
} bench_scaling_t;

typedef struct bench_step_args {
    bool help, csv, paced;
    int local;          /* N of --local N; 0: not given */
    int steps, warm_up; /* number of timed steps; number of steps before them */
    bench_scaling_t scaling;
    const char *record; /* file name of --record; NULL: not given */
    cmd_sets_t sets;
    const char *run_file;
} bench_step_args_t;

/* Parse [argv], which begins with the word "step"; texts in the result point
 * into it. ERR_USAGE. */
err_code_t bench_step_args_parse(int argc, char **argv, bench_step_args_t *out,
                                 err_t *err);

/* With --scaling: the number of ranks of the row after the row for [ranks]
 * ranks. It is twice as many, at most all ranks; 0 after the last row. */
int bench_step_args_next(const bench_step_args_t *args, int ranks);

extern const char bench_step_args_help[];

#endif
