/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For every range of elements of small tensors, the boxes of the range contain
 * exactly its elements, in order. */
#include <criterion/criterion.h>

#include "hdf5io/checkpoint_box.h"

/* Visit the box in C order; element k must be flat element at + k. */
static void box_expect(const hdf5io_manifest_tensor_t *t,
                       const hdf5io_box_t *box, int64_t at)
{
    hsize_t extent[MANIFEST_DIMS_MAX], index[MANIFEST_DIMS_MAX] = {0};
    int ndim = hdf5io_box_extent(t, extent);

    for (int64_t k = 0; k < box->elems; k++) {
        int64_t flat = 0;

        for (int d = 0; d < ndim; d++)
            flat =
                flat * (int64_t)extent[d] + (int64_t)(box->start[d] + index[d]);
        cr_assert_eq(flat, at + k);
        for (int d = ndim - 1; d >= 0; d--) {
            if (++index[d] < box->count[d])
                break;
            index[d] = 0;
        }
    }
}

static void runs_expect(const hdf5io_manifest_tensor_t *t)
{
    hsize_t extent[MANIFEST_DIMS_MAX];
    int ndim = hdf5io_box_extent(t, extent);

    for (int64_t first = 0; first < t->elems; first++)
        for (int64_t last = first + 1; last <= t->elems; last++) {
            int64_t at = first;
            int boxes = 0;

            while (at < last) {
                hdf5io_box_t box;

                hdf5io_box_next(t, at, last, &box);
                cr_assert_gt(box.elems, 0);
                cr_assert_leq(at + box.elems, last);
                box_expect(t, &box, at);
                at += box.elems;
                boxes++;
            }
            cr_assert_leq(boxes, 2 * ndim - 1);
        }
}

Test(checkpoint_box, boxes_cover_every_run_in_order)
{
    hdf5io_manifest_tensor_t tensors[] = {
        {.ndim = 0, .elems = 1},
        {.ndim = 1, .dims = {17}, .elems = 17},
        {.ndim = 2, .dims = {5, 4}, .elems = 20},
        {.ndim = 3, .dims = {3, 1, 4}, .elems = 12},
        {.ndim = 4, .dims = {3, 2, 3, 2}, .elems = 36},
        {.ndim = 6, .dims = {2, 2, 1, 3, 2, 2}, .elems = 48},
    };

    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        runs_expect(&tensors[i]);
}
