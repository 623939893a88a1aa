/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Whole numbers on a command line. */
#ifndef CDDP_CMD_NUMBER_H
#define CDDP_CMD_NUMBER_H

#include "base/err.h"

/* Most ranks of --local. */
#define CMD_LOCAL_MAX 1024

/* The number of [what] ("ranks") in [text], the value of [option]
 * ("--local"), from [least] to [most]. ERR_USAGE. */
err_code_t cmd_number_take(const char *option, const char *what, int least,
                           int most, const char *text, int *out, err_t *err);

#endif
