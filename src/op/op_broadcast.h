/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* add and mul with broadcasting, and the matrices of matmul: what all backends
 * share. */
#ifndef CDDP_OP_OP_BROADCAST_H
#define CDDP_OP_OP_BROADCAST_H

#include "op/op_ops.h"

/*
 * y has the dimensions dims[0 .. ndim). Element (i0, i1, ...) of y is computed
 * from element sum over d of i_d * stride[k][d] of input k. A stride is 0 where
 * input k is repeated. Dimensions of size 1 are left out, and neighbouring
 * dimensions are merged into one where all inputs allow it. So the last stride
 * of an input is 0 or 1.
 */
typedef struct op_broadcast {
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    int64_t stride[OP_INPUTS_MAX][OP_DIMS_MAX];
} op_broadcast_t;

/* op_shape_broadcast must have accepted [config]. */
op_broadcast_t op_broadcast_of(const op_config_t *config);

/* Do samples of these shapes broadcast, and are they different? Shapes are
 * aligned at their last dimension; two sizes agree if they are equal or one of
 * them is 1. */
bool op_broadcast_fits(const op_config_t *config);

/* Output of add and mul with broadcasting. ERR_CONFIG names two inputs whose
 * shapes do not broadcast. */
err_code_t op_shape_broadcast(const op_config_t *config, op_desc_t *out,
                              err_t *err);

/* matmul: for each of [batch] pairs of matrices, y [M,N] = a' [M,K] b' [K,N].
 * Here a' is a, or a transposed if op_transpose_t says so, and b' likewise. */
typedef struct op_matmul {
    int64_t batch, M, N, K;
} op_matmul_t;

op_matmul_t op_matmul_of(const op_config_t *config);
err_code_t op_shape_matmul(const op_config_t *config, op_desc_t *out,
                           err_t *err);

#endif
