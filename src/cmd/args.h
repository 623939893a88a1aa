/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads command lines. All errors are ERR_USAGE. Texts in results point into
 * the command line. */
#ifndef CDDP_CMD_ARGS_H
#define CDDP_CMD_ARGS_H

#include <getopt.h>

#include "base/err.h"

/* Maximum number of ranks of --local. */
#define CMD_LOCAL_MAX 1024

#define CMD_SETS_MAX 256

/* The values of all options --set, in order. */
typedef struct cmd_sets {
    const char *items[CMD_SETS_MAX];
    int count;
} cmd_sets_t;

/* Add [text], the value of one more --set, at most CMD_SETS_MAX of them. It is
 * not checked here: the reader of the run file does that. */
err_code_t cmd_sets_take(cmd_sets_t *sets, const char *text, err_t *err);

/* An option whose value is a whole number, from least to most. */
typedef struct cmd_number {
    const char *option; /* "--local" */
    const char *what;   /* what it counts: "ranks" */
    int least, most;
} cmd_number_t;

/* Read [text], the value of option [of], into *out. */
err_code_t cmd_number_take(const cmd_number_t *of, const char *text, int *out,
                           err_t *err);

typedef struct cmd_options {
    const char *command; /* "cddp-bench step", for errors */
    const char *letters; /* short options as for getopt: ":h" */
    /* long options; those without a letter have a val above UCHAR_MAX */
    const struct option *options;
    /* Store [option], whose value is optarg, in [args]. */
    err_code_t (*take)(void *args, int option, err_t *err);
} cmd_options_t;

/* Pass all options of [argv] to options->take; afterwards optind is the index
 * of the first word after them. Unknown options, and options without their
 * value, are errors. */
err_code_t cmd_options_take(const cmd_options_t *options, int argc, char **argv,
                            void *args, err_t *err);

/* Set the error that [program] has no command [name]. It suggests the most
 * similar one of [names], which ends with NULL. */
err_code_t cmd_command_refuse(const char *program, const char *name,
                              const char *const *names, err_t *err);

#endif
