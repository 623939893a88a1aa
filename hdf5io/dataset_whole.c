/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Checks all of a stored image, although a batch has only a crop of it: crops
 * that together cover the image are converted and checked, one after the other.
 */
#include "hdf5io/dataset_row.h"

/* Where the crop for the stored line or pixel [at] begins in the padded image,
 * so that the crop holds nothing of the border. [stored] and [taken]: lengths
 * of the image and of the crop. If the crop is longer than the image, the image
 * is in the middle of the crop. */
static int64_t crop_begin(int64_t at, int64_t stored, int64_t taken,
                          int64_t pad)
{
    const int64_t last = stored - taken;

    if (last <= 0)
        return (last + 2 * pad) / 2;
    return pad + (at < last ? at : last);
}

static err_code_t crop_check(const hdf5io_dataset_t *dataset, int k,
                             const dataset_row_t *row, err_t *err)
{
    const dataset_field_t *field = row->field;
    const uint64_t sample = (uint64_t)row->sample;
    const void *fields[DATASET_FIELDS_MAX] = {NULL};
    err_code_t rc = hdf5io_dataset_row(row, err);

    if (rc != ERR_OK || field->as != HDF5IO_AS_REALS)
        return rc;
    fields[k] = (const float *)row->out + row->slot * field->elems;
    return hdf5io_dataset_finite(dataset, &sample, 1, fields, err);
}

err_code_t hdf5io_dataset_row_whole(const hdf5io_dataset_t *dataset, int k,
                                    const dataset_row_t *row, err_t *err)
{
    const hdf5io_transform_t *how = &row->field->transform;
    dataset_row_t part = *row;
    transform_crop_t crop = {0};
    err_code_t rc = ERR_OK;

    /* The crop in the middle, which is checked anyway, holds all of it. */
    if (how->out_height >= how->height && how->out_width >= how->width)
        return ERR_OK;
    part.crop = &crop;
    for (int64_t y = 0; y < how->height; y += how->out_height)
        for (int64_t x = 0; x < how->width && rc == ERR_OK;
             x += how->out_width) {
            crop.top = crop_begin(y, how->height, how->out_height, how->pad);
            crop.left = crop_begin(x, how->width, how->out_width, how->pad);
            rc = crop_check(dataset, k, &part, err);
        }
    return rc;
}
