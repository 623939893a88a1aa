/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Inputs of different shapes, element by element: what the broadcasting forms
 * of add and mul share in all backends; and the matrices of matmul. */
#ifndef CDDP_OP_OP_SPREAD_H
#define CDDP_OP_OP_SPREAD_H

#include "op/op_ops.h"

/*
 * y has dims[0 .. ndim); element (i0, i1, ...) of it takes element
 * sum of i * stride[k] of input k: the stride is 0 where input k is repeated.
 * Dimensions that all inputs walk through together are one here, those of 1 are
 * left out, and the last stride of an input is 0 or 1.
 */
typedef struct op_spread {
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    int64_t stride[OP_INPUTS_MAX][OP_DIMS_MAX];
} op_spread_t;

/* [config] has been accepted by op_shape_spread. */
op_spread_t op_spread_of(const op_config_t *config);

/* Do samples of these shapes broadcast, and are they different? Shapes are
 * aligned at their last dimension; two sizes agree if they are equal or one of
 * them is 1. */
bool op_spread_fits(const op_config_t *config);

/* Output of the broadcasting forms of add and mul. ERR_CONFIG names two inputs
 * that do not agree. */
err_code_t op_shape_spread(const op_config_t *config, op_desc_t *out,
                           err_t *err);

/* matmul: for each of [batch] pairs y [M,N] = a' [M,K] b' [K,N], where a' is a,
 * or a transposed (op_turn_t), and b' likewise. */
typedef struct op_matmul {
    int64_t batch, M, N, K;
} op_matmul_t;

op_matmul_t op_matmul_of(const op_config_t *config);
err_code_t op_shape_matmul(const op_config_t *config, op_desc_t *out,
                           err_t *err);

#endif
