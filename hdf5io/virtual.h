/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* virtual: checks that all sources of a virtual dataset exist. */
#ifndef CDDP_HDF5IO_VIRTUAL_H
#define CDDP_HDF5IO_VIRTUAL_H

#include <hdf5.h>

#include "base/err.h"

/*
 * Check all sources of the open [dataset], which was found as [path], before
 * the first read, and before its shape is asked for (HDF5 may derive the shape
 * from the sources). HDF5 itself would silently return fill values for missing
 * or short sources and for unmapped elements, and would recurse without end if
 * a virtual dataset is its own source. If [dataset] is not virtual, only its
 * creation list is used, and its own storage is checked (storage.h).
 *
 * ERR_DATA: a source, at any depth, is missing (the sentence names it), is
 * shorter than its mapping, or is a virtual dataset that leads back to itself;
 * rows are not mapped; or hdf5io_storage_check refuses. ERR_UNAVAILABLE: HDF5
 * cannot open sources because it was started with file locks. *files: number of
 * other files that hold sources; HDF5 keeps each open after its first read.
 * Lock held.
 */
err_code_t hdf5io_virtual_check(hid_t dataset, const char *path, int *files,
                                err_t *err);

#endif
