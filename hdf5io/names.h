/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* names: what an HDF5 file holds, for the sentence about what it lacks. */
#ifndef CDDP_HDF5IO_NAMES_H
#define CDDP_HDF5IO_NAMES_H

#include <hdf5.h>

#include "base/err.h"

/* ERR_DATA: the open [file] (called [name]) has no dataset [path]; lists the
 * datasets that it has and offers the nearest name. Lock held. */
err_code_t hdf5io_names_missing(hid_t file, const char *name, const char *path,
                                err_t *err);

#endif
