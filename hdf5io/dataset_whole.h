/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dataset_whole: reading samples to check all of their numbers. */
#ifndef CDDP_HDF5IO_DATASET_WHOLE_H
#define CDDP_HDF5IO_DATASET_WHOLE_H

#include "hdf5io/dataset.h"

/* hdf5io_dataset_read_fields that checks what the crop of an image leaves out,
 * too: a number there that is not finite, no class, or no probability is
 * ERR_DATA. */
err_code_t hdf5io_dataset_read_whole(hdf5io_dataset_t *dataset,
                                     const int64_t *index, int64_t count,
                                     void *const *fields, err_t *err);

#endif
