/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data info`: describes any HDF5 file. */
#ifndef CDDP_CMD_DATA_INFO_H
#define CDDP_CMD_DATA_INFO_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Append a description of file [path] to [out]: its size, the attributes of the
 * root group (numbers and texts), and for each dataset its name, type, shape,
 * layout and, if it is reached by a link, the target; its chunks and filters,
 * and how cddp-train reads it. ERR_DATA: not an HDF5
 * file, or damaged. */
err_code_t cmd_data_info(const char *path, str_buf_t *out, err_t *err);

/* Name of the numbers of [type], as in h5py ("int8", "float32"); others are
 * "text", "compound", ... Returns [out]. HDF5 lock held. */
const char *cmd_data_type_name(hid_t type, char *out, size_t room);

/* Open [path] with HDF5, read-only. ERR_DATA; the message does not name the
 * file. HDF5 lock held. */
err_code_t cmd_data_open(const char *path, hid_t *out, err_t *err);

/* Put [path] in front of the message in [err], unless it begins with [path]. */
void cmd_data_prefix(const char *path, err_t *err);

#endif
