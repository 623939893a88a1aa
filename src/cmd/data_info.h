/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data info` and `cddp-data verify`: look into any HDF5 file. */
#ifndef CDDP_CMD_DATA_INFO_H
#define CDDP_CMD_DATA_INFO_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Add a description of [path] to [out]: its size, the attributes of the root
 * group (numbers and texts), and each dataset's name, type, shape and layout.
 * ERR_DATA: not an HDF5 file, or damaged. */
err_code_t cmd_data_info(const char *path, str_buf_t *out, err_t *err);

typedef struct cmd_verify_report {
    int datasets;
    int64_t bytes; /* of values read, as stored */
    uint64_t hash; /* XXH3 of the whole file, to compare copies by */
} cmd_verify_report_t;

/* Read every byte of [path] and every value of its datasets. ERR_DATA says what
 * cannot be read; a file without any dataset is ERR_DATA, too. */
err_code_t cmd_data_verify(const char *path, cmd_verify_report_t *out,
                           err_t *err);

#endif
