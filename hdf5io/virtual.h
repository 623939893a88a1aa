/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* virtual: is all that a virtual dataset maps really there? */
#ifndef CDDP_HDF5IO_VIRTUAL_H
#define CDDP_HDF5IO_VIRTUAL_H

#include <hdf5.h>

#include "base/err.h"

/*
 * HDF5 gives fill values, without an error, for what a virtual dataset maps to
 * a file or dataset that is missing or too short, and for what it does not map;
 * and it recurses without end where a virtual dataset is a source of itself. So
 * before the first read, and before the shape is asked for (which may follow
 * the sources, too), everything is looked at here. [dataset] is open, was found
 * as [path], and is not asked for anything but its creation
 * list if it is not virtual; then its own storage is checked (storage.h).
 *
 * ERR_DATA: a source, at any depth, is missing (named), shorter than its
 * mapping or a virtual dataset that leads back to itself; rows that are not
 * mapped; what hdf5io_storage_check refuses. ERR_UNAVAILABLE:
 * HDF5 could not open sources, for the way it was started. *files: how many
 * other files hold sources, which HDF5 keeps open from the first read of each
 * on. Lock held.
 */
err_code_t hdf5io_virtual_check(hid_t dataset, const char *path, int *files,
                                err_t *err);

#endif
