/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* attribute: what can be asked of a data file before it is opened as a shard: a
 * number among its attributes, and whether it has a dataset. */
#ifndef CDDP_HDF5IO_ATTRIBUTE_H
#define CDDP_HDF5IO_ATTRIBUTE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/retry.h"

/* Read the scalar attribute [name] of the root group of [path] as a double; NaN
 * if the attribute does not exist. A failed system call is repeated as [retry]
 * says. ERR_DATA: the file cannot be opened, or the attribute is not a number.
 * ERR_IO and ERR_UNAVAILABLE as for hdf5io_shard_open. Takes the HDF5 lock. */
err_code_t hdf5io_attribute_read(const char *path, const char *name,
                                 const retry_t *retry, double *out, err_t *err);

/* Is there a link called [name] ("/spins") in [path]? A link counts even if it
 * is broken: opening the dataset gives the reason then. Errors as above. Takes
 * the HDF5 lock. */
err_code_t hdf5io_attribute_link(const char *path, const char *name,
                                 const retry_t *retry, bool *out, err_t *err);

#endif
