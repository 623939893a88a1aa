/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cover: finds holes between the pieces of a virtual dataset. Pure geometry. */
#ifndef CDDP_HDF5IO_COVER_H
#define CDDP_HDF5IO_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Positions of a piece along one dimension: [count] blocks of [block] positions
 * each, starting at start, start + stride, ..., but at most [limit] positions
 * in total. A piece is the Cartesian product of its sides.
 */
typedef struct cover_side {
    uint64_t start, stride, count, block, limit;
} cover_side_t;

#define COVER_ALL UINT64_MAX /* count, block or limit: unlimited */

/* A dataset of shape [extent] and its pieces. The sides of piece i are sides[i
 * * ndim] to sides[i * ndim + ndim - 1]. */
typedef struct cover_pieces {
    const uint64_t *extent;
    int ndim;
    const cover_side_t *sides;
    size_t count; /* of pieces */
} cover_pieces_t;

/* Is every element in at least one of the pieces? If not, *whole is false and
 * [hole[0], hole[1]) are positions of the first hole along dimension 0.
 * ERR_DATA: too many blocks, or too much work (the sentence has no subject; the
 * caller adds it). ERR_MEMORY. */
err_code_t hdf5io_cover_check(const cover_pieces_t *pieces, bool *whole,
                              uint64_t hole[2], err_t *err);

#endif
