/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One number that a data file says about itself. */
#ifndef CDDP_HDF5IO_ATTRIBUTE_H
#define CDDP_HDF5IO_ATTRIBUTE_H

#include "base/err.h"
#include "base/retry.h"

/* Read the scalar attribute [name] of the root group of [path] as a double; NaN
 * if there is none. What the system refuses is tried again, as [retry] says.
 * ERR_DATA if the file cannot be opened or the attribute is no number; ERR_IO
 * and ERR_UNAVAILABLE as for a shard. Takes the HDF5 lock. */
err_code_t hdf5io_attribute_read(const char *path, const char *name,
                                 const retry_t *retry, double *out, err_t *err);

#endif
