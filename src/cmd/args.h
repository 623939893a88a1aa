/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What command lines have in common. All errors are ERR_USAGE; texts point into
 * the command line. */
#ifndef CDDP_CMD_ARGS_H
#define CDDP_CMD_ARGS_H

#include <getopt.h>

#include "base/err.h"

/* Most ranks of --local. */
#define CMD_LOCAL_MAX 1024

#define CMD_SETS_MAX 256

/* What --set changes of the run file, in order. */
typedef struct cmd_sets {
    const char *items[CMD_SETS_MAX];
    int count;
} cmd_sets_t;

/* One --set more, as it is given: who reads the run file checks it. Refused
 * beyond CMD_SETS_MAX. */
err_code_t cmd_sets_take(cmd_sets_t *sets, const char *text, err_t *err);

/* The number of [what] ("ranks") in [text], the value of [option]
 * ("--local"), from [least] to [most]. */
err_code_t cmd_number_take(const char *option, const char *what, int least,
                           int most, const char *text, int *out, err_t *err);

typedef struct cmd_options {
    const char *command; /* "cddp-bench step", whose --help is pointed to */
    const char *letters; /* ":h", and others as getopt has them */
    const struct option *options; /* those without a letter beyond UCHAR_MAX */
    /* Take [option], whose value is optarg, into [args]. */
    err_code_t (*take)(void *args, int option, err_t *err);
} cmd_options_t;

/* Take all options of [argv], which come before the words from optind on;
 * unknown ones, and those without their value, are refused. */
err_code_t cmd_options_take(const cmd_options_t *options, int argc, char **argv,
                            void *args, err_t *err);

/* [name] is none of the [names] of commands of [program], NULL behind the last;
 * the nearest one is suggested. */
err_code_t cmd_command_refuse(const char *program, const char *name,
                              const char *const *names, err_t *err);

#endif
