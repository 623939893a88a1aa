/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cover: do the pieces of a virtual dataset leave a hole? Pure geometry. */
#ifndef CDDP_HDF5IO_COVER_H
#define CDDP_HDF5IO_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Where a piece is along one dimension: blocks of [block] positions that begin
 * at start, start + stride, ...; [count] of them, but [limit] positions in all
 * at most. A piece is the product of its sides.
 */
typedef struct cover_side {
    uint64_t start, stride, count, block, limit;
} cover_side_t;

#define COVER_ALL UINT64_MAX /* as count, block or limit: without end */

/*
 * Is every element of [extent] (of [ndim] dimensions) in one of the [count]
 * pieces, whose sides are sides[i * ndim] to sides[i * ndim + ndim - 1]? If
 * not, *whole is false and hole[0] to hole[1] - 1 are positions along dimension
 * 0 of the first hole. ERR_DATA (a sentence without a subject): too many
 * blocks, or too much work. ERR_MEMORY.
 */
err_code_t hdf5io_cover_check(const uint64_t *extent, int ndim,
                              const cover_side_t *sides, size_t count,
                              bool *whole, uint64_t hole[2], err_t *err);

#endif
