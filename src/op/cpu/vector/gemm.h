/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of large float32 matrices on AVX-512: what oneDNN 2.6 does at half
 * of the machine's speed for some shapes (N = 3072), and a tenth slower for
 * most that are as large. Nothing is allocated, and the bits of an element of
 * C depend on K alone, neither on the number of threads nor on M and N.
 */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_H
#define CDDP_OP_CPU_VECTOR_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "op/cpu/vector/gemm_small.h"

/* C [M,N] = A [M,K] B [K,N] + bias [N]. One of A's strides is 1, and one of
 * B's; the rows of C are [c_row] elements apart. */
typedef struct cpu_gemm {
    int64_t M, N, K;
    cpu_matrix_t a, b;
    const float *bias; /* NULL: none */
    float *c;
    int64_t c_row;
} cpu_gemm_t;

/* Has this CPU the vectors? */
bool cpu_gemm_here(void);
/* Is it worth while for a product of this shape? Small and thin ones are
 * oneDNN's. */
bool cpu_gemm_pays(int64_t M, int64_t N, int64_t K);

/* Scratch, aligned to 64 bytes, that cpu_gemm_run needs. */
size_t cpu_gemm_bytes(int threads);

/* cpu_gemm_here() holds; by at most [threads] threads. */
void cpu_gemm_run(const cpu_gemm_t *gemm, int threads, void *scratch);

#endif
