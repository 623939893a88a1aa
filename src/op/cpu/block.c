/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tiles of ROWS x 2 vectors of C stay in registers while k runs; what is left
 * over at the edges is done in smaller tiles and single elements. */
#include "op/cpu/block.h"

#include "op/cpu/math.h"
#include "op/cpu/vector.h"

#define ROWS 4
#define WIDE 16

typedef float wide_t __attribute__((vector_size(4 * WIDE), aligned(4)));

/* [rows] x [vectors] of C: constants, so that loops unroll. */
CPU_INLINE void block_tile(int rows, int vectors, int64_t K, cpu_block_t a,
                           const float *b, int64_t b_row, float *c,
                           int64_t c_row)
{
    wide_t sum[ROWS][2];

    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = *(const wide_t *)(c + i * c_row + v * WIDE);
    for (int64_t k = 0; k < K; k++) {
        const float *from = b + k * b_row;

        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] += a.data[i * a.row + k * a.column] *
                             *(const wide_t *)(from + v * WIDE);
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            *(wide_t *)(c + i * c_row + v * WIDE) = sum[i][v];
}

/* All columns of [rows] rows. */
CPU_INLINE void block_strip(int rows, int64_t N, int64_t K, cpu_block_t a,
                            const float *b, int64_t b_row, float *c,
                            int64_t c_row)
{
    int64_t j = 0;

    for (; j + 2 * WIDE <= N; j += 2 * WIDE)
        block_tile(rows, 2, K, a, b + j, b_row, c + j, c_row);
    for (; j + WIDE <= N; j += WIDE)
        block_tile(rows, 1, K, a, b + j, b_row, c + j, c_row);
    for (; j < N; j++)
        for (int i = 0; i < rows; i++) {
            float sum = c[i * c_row + j];

            for (int64_t k = 0; k < K; k++)
                sum += a.data[i * a.row + k * a.column] * b[k * b_row + j];
            c[i * c_row + j] = sum;
        }
}

CPU_CLONES
void cpu_block_add(int64_t M, int64_t N, int64_t K, cpu_block_t a,
                   const float *b, int64_t b_row, float *c, int64_t c_row)
{
    int64_t i = 0;

    for (; i + ROWS <= M; i += ROWS) {
        cpu_block_t rows = {a.data + i * a.row, a.row, a.column};

        block_strip(ROWS, N, K, rows, b, b_row, c + i * c_row, c_row);
    }
    for (; i < M; i++) {
        cpu_block_t row = {a.data + i * a.row, a.row, a.column};

        block_strip(1, N, K, row, b, b_row, c + i * c_row, c_row);
    }
}
