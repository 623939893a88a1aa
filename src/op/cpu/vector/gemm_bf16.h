/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of small matrices of bfloat16 with sums in float32, on the tiles of
 * AMX where the CPU has them, else by AVX512_BF16. For kernels that work in
 * blocks of CPU_PAIRS tokens with [width] features, padded with zeros to a
 * multiple of CPU_PAIRS. Both units multiply pairs of neighbours along k, so a
 * left factor A [M,K] lies in rows, and a right factor B [K,N] as [K/2,N] of
 * pairs. Hence four forms of a block, each of CPU_PAIRS * width elements:
 *
 *   rows     [CPU_PAIRS, width]     A where k runs over features
 *   turned   [width/2, CPU_PAIRS]   B where k runs over features, of pairs
 *   woven    [CPU_PAIRS/2, width]   B where k runs over tokens, of pairs
 *   columns  [width, CPU_PAIRS]     A where k runs over tokens
 *
 * Only for a CPU with cpu_has_bf16. The two units differ in the order of sums.
 */
#ifndef CDDP_OP_CPU_VECTOR_GEMM_BF16_H
#define CDDP_OP_CPU_VECTOR_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_PAIRS 32

typedef uint16_t cpu_bf16_t;

/* [count] up to a multiple of CPU_PAIRS. */
static inline int64_t cpu_pairs_pad(int64_t count)
{
    return (count + CPU_PAIRS - 1) / CPU_PAIRS * CPU_PAIRS;
}

/* Before and after the products of one thread. [tiles]: cpu_has_amx(). */
void cpu_pairs_begin(bool tiles);
void cpu_pairs_end(bool tiles);

/* C [M,N] += A [M,K] B [K,N], or = with [fresh]; all sizes are multiples of
 * CPU_PAIRS. Rows of A, of B's pairs and of C are a_row, b_row and c_row
 * elements (B: pairs) apart; CPU_PAIRS columns of A further on is a_next
 * elements on. */
typedef struct cpu_pairs {
    bool tiles, fresh;
    int64_t M, N, K;
    const cpu_bf16_t *a, *b;
    int64_t a_row, a_next, b_row, c_row;
    float *c;
} cpu_pairs_t;

void cpu_pairs_add(const cpu_pairs_t *product);

/* Forms of a block of [count] tokens, [features] wide, whose rows in memory are
 * [row] elements apart. */
void cpu_pairs_rows(const float *from, int64_t row, int64_t count,
                    int64_t features, cpu_bf16_t *rows);
void cpu_pairs_weave(const float *from, int64_t row, int64_t count,
                     int64_t features, cpu_bf16_t *woven);
/* [rows, columns] pairs, or floats, as [columns, rows]; multiples of 16. rows
 * become turned (rows CPU_PAIRS, columns width / 2), woven become columns. */
void cpu_pairs_turn(const void *from, int64_t rows, int64_t columns, void *to);

#endif
