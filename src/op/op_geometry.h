/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sizes and positions that every backend reads off a configuration: matrices of
 * linear, windows of pools, rows of norms. Pure functions; each stands in the
 * file that has the shape of its op.
 */
#ifndef CDDP_OP_OP_GEOMETRY_H
#define CDDP_OP_OP_GEOMETRY_H

#include "op/op.h"

/* linear: features of one vector of the input (op_desc.c). */
int64_t op_linear_features(const op_config_t *config);
/* linear: how many such vectors there are. */
int64_t op_linear_rows(const op_config_t *config);

/* mean, max: x is [outer, count, inner], y is [outer, inner]. softmax: both are
 * [outer, count, inner]. */
typedef struct op_reduce {
    int64_t outer, count, inner;
} op_reduce_t;

op_reduce_t op_reduce_of(const op_config_t *config);

/* upsample_linear: element [at] of a dimension of y lies between two elements
 * of that dimension of x, which has [size]: at (at + 1/2) / factor - 1/2, moved
 * into x where it is outside. */
typedef struct op_tap {
    int64_t first, second; /* the two elements of x */
    double weight;         /* weight of [second]; [first] has 1 - weight */
} op_tap_t;

op_tap_t op_upsample_tap(int64_t at, int64_t factor, int64_t size);

/* pad: the element of x, along dimension [i] of space, that element [at] of y
 * is a copy of; -1 if it is padding. */
int64_t op_pad_source(const op_config_t *config, int i, int64_t at);

/* Convolutions and pools: elements of one window in one channel. */
int64_t op_window_taps(const op_config_t *config);
/* Does pool.ceil add a window that reaches beyond the padding? Sizes are
 * positive. */
bool op_pool_reaches_beyond(const op_config_t *config);

/* The norms of a sample. x is seen as [rows] rows of [length] elements, each
 * normalised alone. Row r uses the parameters from
 * r % groups * (length / space) on, each of them for [space] elements. */
typedef struct op_rows {
    int64_t rows, length, groups, space;
} op_rows_t;

op_rows_t op_norm_rows(const op_config_t *config);

/* lstm, gru: the number of gates. */
int op_recurrent_gates(const op_config_t *config);

#endif
