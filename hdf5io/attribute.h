/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads one numeric attribute of a data file. */
#ifndef CDDP_HDF5IO_ATTRIBUTE_H
#define CDDP_HDF5IO_ATTRIBUTE_H

#include "base/err.h"
#include "base/retry.h"

/* Read the scalar attribute [name] of the root group of [path] as a double; NaN
 * if the attribute does not exist. A failed system call is repeated as [retry]
 * says. ERR_DATA: the file cannot be opened, or the attribute is not a number.
 * ERR_IO and ERR_UNAVAILABLE as for hdf5io_shard_open. Takes the HDF5 lock. */
err_code_t hdf5io_attribute_read(const char *path, const char *name,
                                 const retry_t *retry, double *out, err_t *err);

#endif
