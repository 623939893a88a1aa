/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_attribute: copies attributes between HDF5 files. */
#ifndef CDDP_CMD_DATA_ATTRIBUTE_H
#define CDDP_CMD_DATA_ATTRIBUTE_H

#include <hdf5.h>

#include "base/err.h"

/* Copy the attributes of the object [path] of file [from] to the object [path]
 * of file [to], with their types; those that it has already are left as they
 * are, and those with references are left out: what they refer to may not be in
 * [to]. ERR_DATA, ERR_IO, without the name of a file. HDF5 lock held. */
err_code_t cmd_attributes_copy(hid_t from, hid_t to, const char *path,
                               err_t *err);

#endif
