/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_data: marks of the data (hdf5io_mark_t) in a manifest, in memory
 * and as text. Part of checkpoint_manifest. */
#ifndef CDDP_HDF5IO_CHECKPOINT_DATA_H
#define CDDP_HDF5IO_CHECKPOINT_DATA_H

#include <jansson.h>

#include "base/str.h"
#include "hdf5io/checkpoint.h"

/* Copy [count] marks. hdf5io_marks_free frees the copy. ERR_MEMORY. */
err_code_t hdf5io_marks_copy(const hdf5io_mark_t *marks, int count,
                             hdf5io_mark_t **out, err_t *err);
void hdf5io_marks_free(hdf5io_mark_t *marks, int count);

/* Append the JSON member "data"; nothing if [count] is 0. ERR_MEMORY. */
err_code_t hdf5io_marks_print(const hdf5io_mark_t *marks, int count,
                              str_buf_t *out, err_t *err);

/* Parse the value of the member "data"; NULL means that the member is absent,
 * which gives no marks. ERR_DATA, ERR_MEMORY. */
err_code_t hdf5io_marks_parse(json_t *list, hdf5io_mark_t **out, int *count,
                              err_t *err);

#endif
