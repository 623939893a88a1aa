/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* column_way: chooses how a column is read; used by hdf5io_column_open. */
#ifndef CDDP_HDF5IO_COLUMN_WAY_H
#define CDDP_HDF5IO_COLUMN_WAY_H

#include "hdf5io/column.h"

/* Set located and collective from the creation list [create]. [raw]: numbers
 * are stored as convert.h takes them. ERR_DATA: beyond the file. Lock held. */
err_code_t hdf5io_column_way_choose(hdf5io_column_t *out, hid_t create,
                                    bool raw, const column_how_t *how,
                                    err_t *err);

/* Open the dataset of [out] in [file] again with a chunk cache, if it has
 * chunks. Lock held. */
err_code_t hdf5io_column_cache_set(hdf5io_column_t *out, hid_t file,
                                   hid_t create, const column_how_t *how,
                                   err_t *err);

#endif
