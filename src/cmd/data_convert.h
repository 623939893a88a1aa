/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data convert`: shards from files of other formats. */
#ifndef CDDP_CMD_DATA_CONVERT_H
#define CDDP_CMD_DATA_CONVERT_H

#include "base/err.h"

/* Run "convert KIND -o DIR [options] WORD..." (argv[0] is "convert") and print
 * what was written. The files are opened and their headers checked before
 * anything in DIR changes. */
err_code_t cmd_data_convert(int argc, char **argv, err_t *err);

#endif
