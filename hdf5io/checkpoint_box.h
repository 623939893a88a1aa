/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_box: a run of elements of a flat tensor as boxes (hyperslabs) of
 * the tensor's own shape. A run of an N-d array in C order is at most 2 N - 1
 * boxes, each of which is itself contiguous in that order; so a 1-d piece in a
 * shard can be shown in its place of the whole tensor, wherever it was cut.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_BOX_H
#define CDDP_HDF5IO_CHECKPOINT_BOX_H

#include <hdf5.h>
#include <stdint.h>

#include "hdf5io/checkpoint_manifest.h"

typedef struct hdf5io_box {
    hsize_t start[MANIFEST_DIMS_MAX], count[MANIFEST_DIMS_MAX];
    int64_t elems;
} hdf5io_box_t;

/* The tensor's extent for HDF5 (a scalar counts as [1]); returns its rank. */
int hdf5io_box_extent(const hdf5io_manifest_tensor_t *tensor,
                      hsize_t extent[MANIFEST_DIMS_MAX]);

/* The largest box that begins at flat element [at] and ends at or before
 * [last], at < last. */
void hdf5io_box_next(const hdf5io_manifest_tensor_t *tensor, int64_t at,
                     int64_t last, hdf5io_box_t *out);

#endif
