/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Products of small matrices that fit into a cache, for ops that work in
 * blocks. */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_SMALL_H
#define CDDP_OP_CPU_VECTOR_GEMM_SMALL_H

#include <stdint.h>

/* A matrix; element [i,k] is at data[i * row + k * column]. */
typedef struct cpu_matrix {
    const float *data;
    int64_t row, column;
} cpu_matrix_t;

/* [count] rows of float32 numbers, [row] elements apart. */
typedef struct cpu_rows {
    const float *data;
    int64_t row, count;
} cpu_rows_t;

/* C [M,N] += A [M,K] B [K,N]; the rows of B and C are [b_row] and [c_row]
 * elements apart. */
typedef struct cpu_gemm_small {
    int64_t M, N, K;
    cpu_matrix_t a;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
} cpu_gemm_small_t;

/* Each element is summed over k in order. */
void cpu_gemm_small_add(const cpu_gemm_small_t *product);

#endif
