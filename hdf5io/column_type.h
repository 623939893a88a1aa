/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* column_type: how the numbers of a column are stored. Used by
 * hdf5io_column_open. */
#ifndef CDDP_HDF5IO_COLUMN_TYPE_H
#define CDDP_HDF5IO_COLUMN_TYPE_H

#include "hdf5io/column.h"

/* Set [type], and [memory] (to the caller), of a column whose dataset is open.
 * *standard: convert.h reads the stored bytes, else HDF5 converts them to
 * [memory] first. An enumeration (such as h5py's bool) counts as its integer
 * type. ERR_DATA: no number type. Lock held. */
err_code_t hdf5io_column_type_find(hdf5io_column_t *out, bool *standard,
                                   err_t *err);

#endif
