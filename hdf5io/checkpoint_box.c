/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_box.h"

#include "base/check.h"

int hdf5io_box_extent(const hdf5io_manifest_tensor_t *tensor,
                      hsize_t extent[MANIFEST_DIMS_MAX])
{
    extent[0] = 1;
    for (int d = 0; d < tensor->ndim; d++)
        extent[d] = (hsize_t)tensor->dims[d];
    return tensor->ndim > 0 ? tensor->ndim : 1;
}

void hdf5io_box_next(const hdf5io_manifest_tensor_t *tensor, int64_t at,
                     int64_t last, hdf5io_box_t *out)
{
    hsize_t extent[MANIFEST_DIMS_MAX], slices, room;
    int64_t stride[MANIFEST_DIMS_MAX], rest = at;
    int ndim = hdf5io_box_extent(tensor, extent), level = 0;

    check(at >= 0 && at < last && last <= tensor->elems,
          "a box of elements %lld to %lld of %s, which has %lld", (long long)at,
          (long long)last, tensor->name, (long long)tensor->elems);
    stride[ndim - 1] = 1;
    for (int d = ndim - 2; d >= 0; d--)
        stride[d] = stride[d + 1] * (int64_t)extent[d + 1];
    /* Find the outermost dimension of which a whole slice starts at [at] and
     * fits before [last]. */
    while (level < ndim - 1 &&
           (at % stride[level] != 0 || last - at < stride[level]))
        level++;
    for (int d = 0; d < ndim; d++) {
        out->start[d] = (hsize_t)(rest / stride[d]);
        out->count[d] = d < level ? 1 : extent[d];
        rest %= stride[d];
    }
    slices = (hsize_t)((last - at) / stride[level]);
    room = extent[level] - out->start[level];
    out->count[level] = slices < room ? slices : room;
    out->elems = (int64_t)out->count[level] * stride[level];
    check(out->elems > 0 && out->elems <= last - at,
          "a box of %lld elements in %lld to %lld of %s", (long long)out->elems,
          (long long)at, (long long)last, tensor->name);
}
