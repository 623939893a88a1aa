/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reading command lines. All errors are ERR_USAGE; texts point into the command
 * line. */
#ifndef CDDP_CMD_ARGS_H
#define CDDP_CMD_ARGS_H

#include <getopt.h>

#include "base/err.h"

/* Most ranks of --local. */
#define CMD_LOCAL_MAX 1024

#define CMD_SETS_MAX 256

/* The values of all options --set, in order. */
typedef struct cmd_sets {
    const char *items[CMD_SETS_MAX];
    int count;
} cmd_sets_t;

/* Add the value [text] of one more --set, unchecked: the reader of the run file
 * checks it. At most CMD_SETS_MAX. */
err_code_t cmd_sets_take(cmd_sets_t *sets, const char *text, err_t *err);

/* The value of an option that is a whole number. */
typedef struct cmd_number {
    const char *option; /* "--local" */
    const char *what;   /* what it counts: "ranks" */
    int least, most;
} cmd_number_t;

/* Read the number in [text] into *out. */
err_code_t cmd_number_take(const cmd_number_t *of, const char *text, int *out,
                           err_t *err);

typedef struct cmd_options {
    const char *command; /* "cddp-bench step", for errors */
    const char *letters; /* of short options, as getopt takes them: ":h" */
    const struct option *options; /* val above UCHAR_MAX: no letter */
    /* Take [option], whose value is optarg, into [args]. */
    err_code_t (*take)(void *args, int option, err_t *err);
} cmd_options_t;

/* Take all options of [argv]; then optind is the index of the first word behind
 * them. Unknown options, and options without their value, are errors. */
err_code_t cmd_options_take(const cmd_options_t *options, int argc, char **argv,
                            void *args, err_t *err);

/* The error that [name] is no command of [program]. It suggests the nearest of
 * [names], which ends with NULL. */
err_code_t cmd_command_refuse(const char *program, const char *name,
                              const char *const *names, err_t *err);

#endif
