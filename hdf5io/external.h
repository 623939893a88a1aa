/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* external: raw data of a dataset in external files without a format
 * (H5Pset_external). */
#ifndef CDDP_HDF5IO_EXTERNAL_H
#define CDDP_HDF5IO_EXTERNAL_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"

/* A dataset whose bytes are in external files. */
typedef struct external_data {
    hid_t create;            /* its creation list */
    const char *file, *path; /* for sentences */
    uint64_t bytes;          /* of the whole dataset */
} external_data_t;

/* Check that the external files hold all bytes of [data]. ERR_DATA if a file is
 * missing or too short. If the first file holds all bytes, *only becomes its
 * path (to be freed) and *offset the byte offset in it; else *only is NULL.
 * Lock held. */
err_code_t hdf5io_external_check(const external_data_t *data, char **only,
                                 uint64_t *offset, err_t *err);

#endif
