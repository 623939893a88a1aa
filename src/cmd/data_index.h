/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data index`: writes .cddp-index beside shards, as rank 0 of a run does
 * where it may write. */
#ifndef CDDP_CMD_DATA_INDEX_H
#define CDDP_CMD_DATA_INDEX_H

#include "base/err.h"

/* Run "index --input A,B [options] FILE...|DIR" (argv[0] is "index"). Errors as
 * for hdf5io_dataset_open and hdf5io_dataset_index_write. */
err_code_t cmd_data_index(int argc, char **argv, err_t *err);

#endif
