/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of large float32 matrices on AVX-512. oneDNN 2.6 reaches half of
 * the machine's speed for some shapes (N = 3072), and is a tenth slower than
 * this code for most shapes of this size. This code allocates nothing, and the
 * bits of an element of C depend on K only, not on the number of threads, M or
 * N.
 */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_H
#define CDDP_OP_CPU_VECTOR_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "op/cpu/vector/gemm_small.h"

/* C [M,N] = A [M,K] B [K,N] + bias [N]. One stride of A must be 1, and one
 * stride of B. The rows of C are [c_row] elements apart. */
typedef struct cpu_gemm {
    int64_t M, N, K;
    cpu_matrix_t a, b;
    const float *bias; /* NULL: no bias */
    float *c;
    int64_t c_row;
} cpu_gemm_t;

/* Does this CPU support the vector instructions (AVX-512)? */
bool cpu_gemm_supported(void);
/* Is this shape large enough for cpu_gemm_run? For small and thin products,
 * oneDNN is used. */
bool cpu_gemm_is_faster(int64_t M, int64_t N, int64_t K);

/* Bytes of scratch that cpu_gemm_run needs, aligned to 64 bytes. */
size_t cpu_gemm_bytes(int threads);

/* Compute the product with at most [threads] threads. cpu_gemm_supported() must
 * be true. */
void cpu_gemm_run(const cpu_gemm_t *gemm, int threads, void *scratch);

#endif
