/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data verify`: reads a whole HDF5 file. */
#ifndef CDDP_CMD_DATA_VERIFY_H
#define CDDP_CMD_DATA_VERIFY_H

#include <stdint.h>

#include "base/err.h"

typedef struct cmd_verify_report {
    int datasets;
    /* bytes of the values that were read, in their stored type */
    int64_t bytes;
    uint64_t hash; /* XXH3 of the whole file, for comparing copies */
} cmd_verify_report_t;

/* Read every byte of file [path] and every stored value of its datasets. Prints
 * a line of progress to stderr every [every] seconds. ERR_DATA names the object
 * that cannot be read. A file without datasets, and a virtual dataset or link
 * whose target is missing, are ERR_DATA, too. */
err_code_t cmd_data_verify(const char *path, double every,
                           cmd_verify_report_t *out, err_t *err);

#endif
