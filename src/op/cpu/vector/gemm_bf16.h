/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of small matrices of bfloat16 with sums in float32, on the tiles of
 * AMX where the CPU has them, else by AVX512_BF16. For kernels that work in
 * blocks of CPU_BF16_BLOCK tokens with [width] features, padded with zeros to a
 * multiple of CPU_BF16_BLOCK. Both units multiply pairs of neighbours along k,
 * so a left factor A [M,K] lies in rows, and a right factor B [K,N] as [K/2,N]
 * of pairs. Hence four forms of a block, each of CPU_BF16_BLOCK * width
 * elements:
 *
 *   rows     [CPU_BF16_BLOCK, width]     A where k runs over features
 *   turned   [width/2, CPU_BF16_BLOCK]   B where k runs over features, of pairs
 *   woven    [CPU_BF16_BLOCK/2, width]   B where k runs over tokens, of pairs
 *   columns  [width, CPU_BF16_BLOCK]     A where k runs over tokens
 *
 * Only for a CPU with simd_has_bf16. The two units differ in the order of sums.
 */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_BF16_H
#define CDDP_OP_CPU_VECTOR_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_BF16_BLOCK 32

typedef uint16_t cpu_bf16_t;

/* [count] up to a multiple of CPU_BF16_BLOCK. */
static inline int64_t cpu_gemm_bf16_pad(int64_t count)
{
    return (count + CPU_BF16_BLOCK - 1) / CPU_BF16_BLOCK * CPU_BF16_BLOCK;
}

/* Before and after the products of one thread. [tiles]: simd_has_amx(). */
void cpu_gemm_bf16_begin(bool tiles);
void cpu_gemm_bf16_end(bool tiles);

/* C [M,N] += A [M,K] B [K,N], or = with [fresh]; all sizes are multiples of
 * CPU_BF16_BLOCK. Rows of A, of B's pairs and of C are a_row, b_row and c_row
 * elements (B: pairs) apart; CPU_BF16_BLOCK columns of A further on is a_next
 * elements on. */
typedef struct cpu_gemm_bf16 {
    bool tiles, fresh;
    int64_t M, N, K;
    const cpu_bf16_t *a, *b;
    int64_t a_row, a_next, b_row, c_row;
    float *c;
} cpu_gemm_bf16_t;

void cpu_gemm_bf16_add(const cpu_gemm_bf16_t *product);

/* Forms of a block of [count] tokens, [features] wide, whose rows in memory are
 * [row] elements apart. */
void cpu_gemm_bf16_rows(const float *from, int64_t row, int64_t count,
                        int64_t features, cpu_bf16_t *rows);
void cpu_gemm_bf16_pack(const float *from, int64_t row, int64_t count,
                        int64_t features, cpu_bf16_t *packed);
/* [rows, columns] pairs, or floats, as [columns, rows]; multiples of 16. rows
 * become turned (rows CPU_BF16_BLOCK, columns width / 2), woven become columns.
 */
void cpu_gemm_bf16_transpose(const void *from, int64_t rows, int64_t columns,
                             void *to);

#endif
