/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_box: divides a run of consecutive elements of a flat tensor into
 * boxes (hyperslabs) of the tensor's own shape. A run of an N-dimensional array
 * in C order consists of at most 2 N - 1 boxes, each of which is contiguous. So
 * a 1-dimensional piece in a shard can be mapped to its place in the whole
 * tensor, wherever the tensor was divided.
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

/* Dimensions of the tensor for HDF5 (a scalar has the extent [1]). Returns
 * their number. */
int hdf5io_box_extent(const hdf5io_manifest_tensor_t *tensor,
                      hsize_t extent[MANIFEST_DIMS_MAX]);

/* The largest box that starts at flat element [at] and ends at or before
 * [last]. Requires at < last. */
void hdf5io_box_next(const hdf5io_manifest_tensor_t *tensor, int64_t at,
                     int64_t last, hdf5io_box_t *out);

#endif
