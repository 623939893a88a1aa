/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* HDF5's types of our types, and attributes. The HDF5 lock must be held. */
#ifndef CDDP_IMPORT_HDF_H
#define CDDP_IMPORT_HDF_H

#include <hdf5.h>

#include "base/err.h"
#include "import/type.h"

/* The little-endian type in files, or that of this machine's memory ([native]).
 * H5Tclose frees it; < 0 on failure. */
hid_t import_hdf_type(const import_field_t *field, bool native);

/* Write the attribute [name] of [object]: [count] texts (UTF-8). ERR_IO. */
err_code_t import_hdf_names(hid_t object, const char *name, char *const *texts,
                            int count, err_t *err);

#endif
