/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Tiles of C, rows x vectors, stay in registers during the loop over k. The
 * edges are computed in smaller tiles and single elements. There is one
 * version for each vector unit, with tiles that fill its registers. This file
 * is compiled with fused multiply-add where the unit has it (as oneDNN is), so
 * the bits depend on the unit.
 */
#include "op/cpu/vector/gemm_small.h"

#include "base/check.h"
#include "simd/math.h"

#define WIDE 16
#define ROWS_MAX 8
#define VECTORS_MAX 2

typedef float wide_t __attribute__((vector_size(4 * WIDE), aligned(4)));

/* Compute a tile of C at [i0,j0]. [rows] and [vectors] are constants, so that
 * loops are unrolled. */
SIMD_INLINE void block_tile(const cpu_gemm_small_t *work, int rows, int vectors,
                            int64_t i0, int64_t j0)
{
    const float *a = work->a.data + i0 * work->a.row, *b = work->b + j0;
    const int64_t row = work->a.row, column = work->a.column;
    const int64_t b_row = work->b_row, c_row = work->c_row;
    float *c = work->c + i0 * c_row + j0;
    wide_t sum[ROWS_MAX][VECTORS_MAX];

#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = *(const wide_t *)(c + i * c_row + v * WIDE);
    for (int64_t k = 0; k < work->K; k++, a += column, b += b_row) {
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[i][v] += a[i * row] * *(const wide_t *)(b + v * WIDE);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            *(wide_t *)(c + i * c_row + v * WIDE) = sum[i][v];
}

SIMD_INLINE void block_element(const cpu_gemm_small_t *work, int64_t i,
                               int64_t j)
{
    const float *a = work->a.data + i * work->a.row;
    float sum = work->c[i * work->c_row + j];

    for (int64_t k = 0; k < work->K; k++)
        sum += a[k * work->a.column] * work->b[k * work->b_row + j];
    work->c[i * work->c_row + j] = sum;
}

/* Compute all columns of [rows] rows. */
SIMD_INLINE void block_strip(const cpu_gemm_small_t *work, int rows,
                             int vectors, int64_t i0)
{
    int64_t j = 0;

    for (; j + vectors * WIDE <= work->N; j += vectors * WIDE)
        block_tile(work, rows, vectors, i0, j);
    for (; j + WIDE <= work->N; j += WIDE)
        block_tile(work, rows, 1, i0, j);
    for (; j < work->N; j++)
        for (int i = 0; i < rows; i++)
            block_element(work, i0 + i, j);
}

SIMD_INLINE void block_all(const cpu_gemm_small_t *work, int rows, int vectors)
{
    int64_t i = 0;

    for (; i + rows <= work->M; i += rows)
        block_strip(work, rows, vectors, i);
    for (; i < work->M; i++)
        block_strip(work, 1, vectors, i);
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void
block_avx512(const cpu_gemm_small_t *work)
{
    block_all(work, 8, 2);
}

__attribute__((target("avx2,fma"))) static void
block_avx2(const cpu_gemm_small_t *work)
{
    block_all(work, 4, 1);
}

#endif

void cpu_gemm_small_add(const cpu_gemm_small_t *product)
{
    check(product->M >= 0 && product->N >= 0 && product->K >= 0,
          "a negative size");
    check(product->M <= 1 || product->c_row >= product->N,
          "rows of C overlap: %d < %d", (int)product->c_row, (int)product->N);

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        block_avx512(product);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        block_avx2(product);
    else
#endif
        block_all(product, 4, 1);
}
