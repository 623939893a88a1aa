/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-train. */
#ifndef CDDP_CMD_TRAIN_ARGS_H
#define CDDP_CMD_TRAIN_ARGS_H

#include <stdbool.h>

#include "base/err.h"
#include "cmd/args.h"
#include "train/run.h"

typedef struct train_args {
    bool help, version, check, print_rundir;
    int local; /* ranks of --local N, 0: not given */
    train_resume_t resume;
    bool fresh, resumes; /* were --fresh and --resume given? */
    const char *resume_path;
    cmd_sets_t sets;
    const char *run_file; /* given, else $CDDP_RUN, else run.yaml */
} train_args_t;

/* Parse [argv]; texts point into it and the environment. ERR_USAGE. */
err_code_t train_args_parse(int argc, char **argv, train_args_t *out,
                            err_t *err);

extern const char train_args_help[];

#endif
