/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data info`: look into any HDF5 file. */
#ifndef CDDP_CMD_DATA_INFO_H
#define CDDP_CMD_DATA_INFO_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Add a description of [path] to [out]: its size, the attributes of the root
 * group (numbers and texts), and each dataset's name, type, shape and layout,
 * and where its link leads. ERR_DATA: not an HDF5 file, or damaged. */
err_code_t cmd_data_info(const char *path, str_buf_t *out, err_t *err);

/* Open [path] with HDF5 to look into it; ERR_DATA has no name in front. Lock
 * held. */
err_code_t cmd_data_open(const char *path, hid_t *out, err_t *err);

/* Prefix the message with [path], unless it begins with it. */
void cmd_data_prefix(const char *path, err_t *err);

#endif
