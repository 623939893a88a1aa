/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* ask: runs one of Slurm's commands and reads what it prints. */
#ifndef CDDP_SLURM_ASK_H
#define CDDP_SLURM_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Seconds that a command may take. Slurm's commands hang if the controller
 * does; then the command is killed. */
#define SLURM_ASK_TIMEOUT 10.0

/*
 * Run the program args[0] (found by PATH) with arguments [args], ended by NULL.
 * [out] becomes its standard output as a string; its standard error is dropped.
 * ERR_UNAVAILABLE: it is missing, fails, takes too long, or prints [room] bytes
 * or more. Blocks for at most SLURM_ASK_TIMEOUT seconds.
 */
err_code_t slurm_ask(const char *const *args, char *out, size_t room,
                     err_t *err);

/* A program whose output is read. */
typedef struct slurm_command {
    const char *const *args; /* as for slurm_ask */
    double timeout;          /* seconds */
    bool errors;             /* its standard error is shown, not dropped */
    /* Once this file descriptor is readable, the program is killed; 0: none */
    int cancel;
    /* Its environment. NULL: that of this process; then no other thread may
     * change it meanwhile (by setenv, which libraries call, too). */
    char *const *env;
} slurm_command_t;

/* As slurm_ask, but a program that ends with a status other than 0 is no error:
 * *status is its exit status, or 128 + the signal that ended it; with
 * ERR_UNAVAILABLE, 127 if it is missing and -1 if not. Blocks for at most
 * command->timeout. */
err_code_t slurm_command_read(const slurm_command_t *command, char *out,
                              size_t room, int *status, err_t *err);

#endif
