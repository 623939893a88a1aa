/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sizes and positions that all backends derive from a configuration: matrices
 * of linear, windows of pools, rows of norms. Pure functions. Each is defined
 * in the file with the shape function of its op.
 */
#ifndef CDDP_OP_OP_GEOMETRY_H
#define CDDP_OP_OP_GEOMETRY_H

#include "op/op.h"

/* linear: features of one input vector (op_desc.c). */
int64_t op_linear_features(const op_config_t *config);
/* linear: number of input vectors. */
int64_t op_linear_rows(const op_config_t *config);

/* mean, max: x is [outer, count, inner], y is [outer, inner]. softmax: both are
 * [outer, count, inner]. */
typedef struct op_reduce {
    int64_t outer, count, inner;
} op_reduce_t;

op_reduce_t op_reduce_of(const op_config_t *config);

/* upsample_linear: along one dimension of x with [size] elements, element [at]
 * of y is at position (at + 1/2) / factor - 1/2 of x, clamped to x. It is
 * interpolated from the two elements of x around this position. */
typedef struct op_tap {
    int64_t first, second; /* the two elements of x */
    double weight;         /* weight of [second]; [first] has 1 - weight */
} op_tap_t;

op_tap_t op_upsample_tap(int64_t at, int64_t factor, int64_t size);

/* pad: the index in x, along spatial dimension [i], of the element of which
 * element [at] of y is a copy; -1 if [at] is constant padding. */
int64_t op_pad_source(const op_config_t *config, int i, int64_t at);

/* Convolutions and pools: number of elements of one window in one channel. */
int64_t op_window_taps(const op_config_t *config);
/* Does pool.ceil add a window that ends after the padding? Kernel and stride
 * must be positive. */
bool op_pool_reaches_beyond(const op_config_t *config);

/* Sample norms. x is [rows] rows of [length] elements, each normalised alone.
 * Row r uses length / space consecutive parameters, of which the first is r %
 * groups * (length / space). Each parameter applies to [space] elements. */
typedef struct op_rows {
    int64_t rows, length, groups, space;
} op_rows_t;

op_rows_t op_norm_rows(const op_config_t *config);

/* lstm, gru: the number of gates. */
int op_recurrent_gates(const op_config_t *config);

#endif
