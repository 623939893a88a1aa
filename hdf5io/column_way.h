/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* column_way: chooses how a column is read. Used by hdf5io_column_open. */
#ifndef CDDP_HDF5IO_COLUMN_WAY_H
#define CDDP_HDF5IO_COLUMN_WAY_H

#include "hdf5io/column.h"

/* Set [way], [located], [chunks] and [collective] by the creation list
 * [create]. [raw]: the numbers are stored in a type that convert.h reads.
 * ERR_DATA: the data ends beyond the end of the file. Lock held. */
err_code_t hdf5io_column_way_choose(hdf5io_column_t *out, hid_t create,
                                    bool raw, const column_how_t *how,
                                    err_t *err);

/* Open the dataset of [out] in [file] again with a suitable chunk cache, if the
 * dataset is chunked. Lock held. */
err_code_t hdf5io_column_cache_set(hdf5io_column_t *out, hid_t file,
                                   hid_t create, const column_how_t *how,
                                   err_t *err);

#endif
