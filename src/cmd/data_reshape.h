/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data shard`: other shards of the same samples. */
#ifndef CDDP_CMD_DATA_RESHAPE_H
#define CDDP_CMD_DATA_RESHAPE_H

#include "base/err.h"

/* Run "shard -o DIR [options] FILE..." (argv[0] is "shard") and print what was
 * written. All files are looked at before anything in DIR changes. */
err_code_t cmd_data_reshape(int argc, char **argv, err_t *err);

#endif
