/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dataset_row: converts stored rows to delivered samples, and checks them.
 * Internal to the files dataset_*.c. */
#ifndef CDDP_HDF5IO_DATASET_ROW_H
#define CDDP_HDF5IO_DATASET_ROW_H

#include "hdf5io/dataset_impl.h"

/* One stored row of a column, and its place among the delivered samples. */
typedef struct dataset_row {
    const dataset_field_t *field;
    const hdf5io_column_t *column;
    const char *file;             /* name of the shard, for error sentences */
    int64_t number;               /* within the shard, for error sentences */
    int64_t sample;               /* global */
    const hdf5io_draw_t *draw;    /* NULL: none */
    const transform_crop_t *crop; /* NULL: the crop that [draw] chooses */
    const void *stored;
    void *out;    /* [samples, field->elems]: transformed samples */
    int64_t slot; /* the row becomes this one of the samples at [out] */
} dataset_row_t;

/* Convert [row] to the type that the model needs, and check it. ERR_DATA: a
 * label or token is out of range, the numbers are no probabilities, or float32
 * cannot hold an integer. */
err_code_t hdf5io_dataset_row(const dataset_row_t *row, err_t *err);

/* Check all numbers of [row] of field [k], also those that the crop leaves out
 * (dataset_whole.h). Overwrites sample row->slot of row->out. */
err_code_t hdf5io_dataset_row_whole(const hdf5io_dataset_t *dataset, int k,
                                    const dataset_row_t *row, err_t *err);

/* Does [field] deliver the bytes of [column] always as they are stored? Then
 * hdf5io_dataset_row only copies. */
bool hdf5io_dataset_row_same(const dataset_field_t *field,
                             const hdf5io_column_t *column);

#endif
