/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_data: the marks of the data (hdf5io_mark_t) in a manifest, in
 * memory and as text. A part of checkpoint_manifest. */
#ifndef CDDP_HDF5IO_CHECKPOINT_DATA_H
#define CDDP_HDF5IO_CHECKPOINT_DATA_H

#include <jansson.h>

#include "base/str.h"
#include "hdf5io/checkpoint.h"

/* A copy of [count] marks, for hdf5io_marks_free. ERR_MEMORY. */
err_code_t hdf5io_marks_copy(const hdf5io_mark_t *marks, int count,
                             hdf5io_mark_t **out, err_t *err);
void hdf5io_marks_free(hdf5io_mark_t *marks, int count);

/* Append the member; nothing for no marks. ERR_MEMORY. */
err_code_t hdf5io_marks_print(const hdf5io_mark_t *marks, int count,
                              str_buf_t *out, err_t *err);

/* From the member's value; NULL: it is not there, and there are no marks.
 * ERR_DATA, ERR_MEMORY. */
err_code_t hdf5io_marks_parse(json_t *list, hdf5io_mark_t **out, int *count,
                              err_t *err);

#endif
