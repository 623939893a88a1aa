/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data make NAME`: reads the command line of each data set and makes the
 * data set. */
#ifndef CDDP_CMD_DATA_MAKE_H
#define CDDP_CMD_DATA_MAKE_H

#include "base/err.h"

/* Run the command; argv[0] is "make". Writes the files and prints a few lines
 * about them. */
err_code_t cmd_data_make(int argc, char **argv, err_t *err);

#endif
