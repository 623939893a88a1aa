/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* external: raw storage in files without any format (H5Pset_external). */
#ifndef CDDP_HDF5IO_EXTERNAL_H
#define CDDP_HDF5IO_EXTERNAL_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"

/* The [bytes] bytes of the dataset [path] in the file [file] are in the
 * external files of its creation list [create]: ERR_DATA if one of them is
 * missing or too short. If the first one holds all, its path (to be freed) and
 * the place in it; else *only is NULL. Lock held. */
err_code_t hdf5io_external_check(hid_t create, const char *file,
                                 const char *path, uint64_t bytes, char **only,
                                 uint64_t *offset, err_t *err);

#endif
