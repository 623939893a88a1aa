/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-report. */
#ifndef CDDP_CMD_REPORT_ARGS_H
#define CDDP_CMD_REPORT_ARGS_H

#include <stdbool.h>

#include "base/err.h"

/* Most runs of one report. */
#define REPORT_RUNS_MAX 64

typedef enum report_mode {
    REPORT_MODE_PAGE, /* one HTML file */
    REPORT_MODE_LIST,
    REPORT_MODE_WATCH,
    REPORT_MODE_CSV
} report_mode_t;

typedef struct report_args {
    bool help, version;
    report_mode_t mode;
    int mode_count;     /* number of options that chose a mode */
    const char *output; /* -o; NULL: not given; "-": standard output */
    int every;          /* --every, in seconds; 0: not given */
    char **dirs;        /* words of the command line */
    int count;
} report_args_t;

extern const char report_args_help[];

/* Read the command line. [argv] is reordered. ERR_USAGE. */
err_code_t report_args_parse(int argc, char **argv, report_args_t *out,
                             err_t *err);

#endif
