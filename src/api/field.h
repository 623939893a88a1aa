/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* field: the inputs and targets of a program's data set, in the form that the
 * reader of the files takes. */
#ifndef CDDP_API_FIELD_H
#define CDDP_API_FIELD_H

#include "base/err.h"
#include "cddp/data.h"
#include "hdf5io/dataset.h"

/* All fields of a data set. It must not be moved, as the configuration that
 * api_fields_open fills points to it. */
typedef struct api_fields {
    hdf5io_field_t inputs[HDF5IO_FIELDS_MAX], targets[HDF5IO_FIELDS_MAX];
    char shapes[HDF5IO_FIELDS_MAX][32];
    int input_count, target_count;
} api_fields_t;

/* Set the inputs and targets of [out] to those of [config], which is checked.
 * ERR_CONFIG names the dataset of a field whose options are wrong. The caller
 * zeroes [fields] before, and closes it in any case, after the data is open. */
err_code_t api_fields_open(const cddp_data_config_t *config,
                           api_fields_t *fields, hdf5io_dataset_config_t *out,
                           err_t *err);
void api_fields_close(api_fields_t *fields);

#endif
