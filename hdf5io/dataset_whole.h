/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dataset_whole: reads samples and checks all of their numbers. */
#ifndef CDDP_HDF5IO_DATASET_WHOLE_H
#define CDDP_HDF5IO_DATASET_WHOLE_H

#include "hdf5io/dataset.h"

/* As hdf5io_dataset_read_fields, but also check the numbers that the crop of an
 * image leaves out. ERR_DATA: one of these numbers is not finite, no class, or
 * no probability. */
err_code_t hdf5io_dataset_read_whole(hdf5io_dataset_t *dataset,
                                     const int64_t *index, int64_t count,
                                     void *const *fields, err_t *err);

#endif
