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
    int local; /* N of --local N; 0: not given */
    train_resume_t resume;
    bool fresh, resumes; /* --fresh was given; --resume was given */
    const char *resume_path;
    cmd_sets_t sets;
    const char *predict; /* the file of --predict; NULL: not given */
    const char *pick;    /* the file of --pick; NULL: not given */
    /* from the command line, else $CDDP_RUN, else run.yaml */
    const char *run_file;
} train_args_t;

/* Parse [argv]; texts in the result point into it and into the environment.
 * ERR_USAGE. */
err_code_t train_args_parse(int argc, char **argv, train_args_t *out,
                            err_t *err);

extern const char train_args_help[];

#endif
