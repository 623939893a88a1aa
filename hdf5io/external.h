/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* external: raw data of a dataset in external files without a format
 * (H5Pset_external). */
#ifndef CDDP_HDF5IO_EXTERNAL_H
#define CDDP_HDF5IO_EXTERNAL_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"

/* Check that the external files of the creation list [create] hold the [bytes]
 * bytes of the dataset [path] in the file [file]. ERR_DATA if a file is missing
 * or too short. If the first file holds all bytes, *only becomes its path (to
 * be freed) and *offset the byte offset in it; else *only is NULL. Lock
 * held. */
err_code_t hdf5io_external_check(hid_t create, const char *file,
                                 const char *path, uint64_t bytes, char **only,
                                 uint64_t *offset, err_t *err);

#endif
