/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of small bfloat16 matrices with sums in float32, on AMX tiles if
 * the CPU has them, else with AVX512_BF16. For ops that work in blocks of
 * CPU_BF16_BLOCK tokens with [width] features, padded with zeros to a multiple
 * of CPU_BF16_BLOCK. Both units multiply pairs of neighbours along k. So a
 * left factor A [M,K] is stored by rows, and a right factor B [K,N] as [K/2,N]
 * of pairs (the VNNI layout). A block therefore has four forms, each of
 * CPU_BF16_BLOCK * width elements:
 *
 *   rows        [CPU_BF16_BLOCK, width]    A, where k runs over features
 *   transposed  [width/2, CPU_BF16_BLOCK]  B of pairs, k runs over features
 *   packed      [CPU_BF16_BLOCK/2, width]  B of pairs, k runs over tokens
 *   columns     [width, CPU_BF16_BLOCK]    A, where k runs over tokens
 *
 * Only for a CPU with simd_has_bf16. The two units add in different orders, so
 * their results may differ in the last bits.
 */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_BF16_H
#define CDDP_OP_CPU_VECTOR_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#include "op/cpu/vector/gemm_small.h"

#define CPU_BF16_BLOCK 32

typedef uint16_t cpu_bf16_t;

/* [count] rounded up to a multiple of CPU_BF16_BLOCK. */
static inline int64_t cpu_gemm_bf16_pad(int64_t count)
{
    return (count + CPU_BF16_BLOCK - 1) / CPU_BF16_BLOCK * CPU_BF16_BLOCK;
}

/* Each thread calls begin before its first product and end after its last one.
 * [tiles]: simd_has_amx(). */
void cpu_gemm_bf16_begin(bool tiles);
void cpu_gemm_bf16_end(bool tiles);

/* C [M,N] += A [M,K] B [K,N]. All sizes are multiples of CPU_BF16_BLOCK. */
typedef struct cpu_gemm_bf16 {
    bool tiles; /* simd_has_amx() */
    bool fresh; /* C = A B: C is overwritten */
    int64_t M, N, K;
    const cpu_bf16_t *a, *b;
    int64_t a_row;  /* elements from one row of A to the next */
    int64_t a_next; /* elements from CPU_BF16_BLOCK columns of A to the next */
    int64_t b_row;  /* pairs from one row of pairs of B to the next */
    int64_t c_row;  /* elements from one row of C to the next */
    float *c;
} cpu_gemm_bf16_t;

void cpu_gemm_bf16_add(const cpu_gemm_bf16_t *product);

/* Convert a block of tokens, a row of [features] numbers each, to the form rows
 * or packed. */
void cpu_gemm_bf16_rows(cpu_rows_t from, int64_t features, cpu_bf16_t *rows);
void cpu_gemm_bf16_pack(cpu_rows_t from, int64_t features, cpu_bf16_t *packed);
/* Transpose a matrix [rows, columns] of pairs or of floats; both sizes are
 * multiples of 16. The form rows becomes transposed (with rows CPU_BF16_BLOCK
 * and columns width / 2), the form packed becomes columns. */
void cpu_gemm_bf16_transpose(const void *from, int64_t rows, int64_t columns,
                             void *to);

#endif
