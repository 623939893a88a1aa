/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* names: lists the datasets of an HDF5 file, for the sentence about a missing
 * one. */
#ifndef CDDP_HDF5IO_NAMES_H
#define CDDP_HDF5IO_NAMES_H

#include <hdf5.h>

#include "base/err.h"

/* Set ERR_DATA: the open [file] (called [name]) has no dataset [path]. The
 * sentence lists existing datasets and suggests the nearest name. Lock held. */
err_code_t hdf5io_names_missing(hid_t file, const char *name, const char *path,
                                err_t *err);

#endif
