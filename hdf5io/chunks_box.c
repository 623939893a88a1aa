/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The chunks that a block touches. */
#include "base/check.h"
#include "hdf5io/chunks_priv.h"

bool hdf5io_chunks_box(const hdf5io_chunks_t *chunks,
                       const chunks_block_t *block, chunks_box_t *out)
{
    *out = (chunks_box_t){0};
    for (int d = 0; d < chunks->ndim; d++) {
        if (block->count[d] == 0)
            return false;
        check(block->start[d] < chunks->dims[d] &&
                  block->count[d] <= chunks->dims[d] - block->start[d],
              "%s: %llu from %llu of %llu in dimension %d", chunks->path,
              (unsigned long long)block->count[d],
              (unsigned long long)block->start[d],
              (unsigned long long)chunks->dims[d], d);
        out->first[d] = block->start[d] / chunks->chunk[d];
        out->last[d] =
            (block->start[d] + block->count[d] - 1) / chunks->chunk[d];
    }
    return true;
}

bool hdf5io_chunks_next(const hdf5io_chunks_t *chunks, const chunks_box_t *box,
                        hsize_t *grid)
{
    for (int d = chunks->ndim; d-- > 0;) {
        if (grid[d] < box->last[d]) {
            grid[d]++;
            return true;
        }
        grid[d] = box->first[d];
    }
    return false;
}

uint64_t hdf5io_chunks_number(const hdf5io_chunks_t *chunks,
                              const hsize_t *grid)
{
    uint64_t number = 0;

    for (int d = 0; d < chunks->ndim; d++)
        number = number * chunks->grid[d] + grid[d];
    return number;
}
