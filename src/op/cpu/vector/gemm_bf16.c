/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/vector/gemm_bf16.h"

#include <string.h>

#include "base/check.h"
#include "simd/math.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TILE 16 /* rows of a tile; floats, or pairs of bfloat16, per row */

#define UNIT_BF16 __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define UNIT_TILES __attribute__((target("amx-tile,amx-bf16,avx512f")))

/* ---- products ------------------------------------------------------------ */

/* Compiler barrier: all stores so far are made. Needed before tiles are
 * loaded, because some compilers do not know that these instructions read
 * memory. */
#define STORED(at) __asm__ volatile("" ::"r"(at) : "memory")

/* Configuration of the tiles. All eight are full: 16 rows of 64 bytes. */
typedef struct tile_shapes {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes_t;

UNIT_TILES void cpu_gemm_bf16_begin(bool tiles)
{
    tile_shapes_t shapes = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        shapes.row_bytes[i] = 4 * TILE;
        shapes.rows[i] = TILE;
    }
    STORED(&shapes);
    if (tiles)
        _tile_loadconfig(&shapes);
}

UNIT_TILES void cpu_gemm_bf16_end(bool tiles)
{
    if (tiles)
        _tile_release();
}

/* Compute 32 x 32 elements of C. Tiles 0 to 3 are C, 4 and 5 are A, 6 and 7
 * are B. */
UNIT_TILES static void pairs_tiles(const cpu_gemm_bf16_t *p,
                                   const cpu_bf16_t *a, const cpu_bf16_t *b,
                                   float *c)
{
    const long a_step = 2 * p->a_row, b_step = 4 * p->b_row;
    const long c_step = 4 * p->c_row;
    float *low = c + TILE * p->c_row;

    STORED(c);
    if (p->fresh) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, c_step);
        _tile_loadd(1, c + TILE, c_step);
        _tile_loadd(2, low, c_step);
        _tile_loadd(3, low + TILE, c_step);
    }
    for (int64_t k = 0; k < p->K; k += CPU_BF16_BLOCK, a += p->a_next) {
        _tile_loadd(4, a, a_step);
        _tile_loadd(6, b, b_step);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + 2 * TILE, b_step);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE * p->a_row, a_step);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        b += CPU_BF16_BLOCK * p->b_row;
    }
    _tile_stored(0, c, c_step);
    _tile_stored(1, c + TILE, c_step);
    _tile_stored(2, low, c_step);
    _tile_stored(3, low + TILE, c_step);
}

#define ROWS 8

/* Compute ROWS x 32 elements of C. */
UNIT_BF16 static void pairs_vectors(const cpu_gemm_bf16_t *p,
                                    const cpu_bf16_t *a, const cpu_bf16_t *b,
                                    float *c)
{
    __m512 sum[ROWS][2];

    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < 2; v++)
            sum[i][v] = p->fresh ? _mm512_setzero_ps()
                                 : _mm512_loadu_ps(c + i * p->c_row + v * TILE);
    for (int64_t k = 0; k < p->K; k += 2, b += 2 * p->b_row) {
        __m512bh first = (__m512bh)_mm512_loadu_si512(b);
        __m512bh second = (__m512bh)_mm512_loadu_si512(b + 2 * TILE);

#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            int pair;
            __m512bh factor;

            memcpy(&pair, a + i * p->a_row + k % CPU_BF16_BLOCK, sizeof pair);
            factor = (__m512bh)_mm512_set1_epi32(pair);
            sum[i][0] = _mm512_dpbf16_ps(sum[i][0], factor, first);
            sum[i][1] = _mm512_dpbf16_ps(sum[i][1], factor, second);
        }
        if ((k + 2) % CPU_BF16_BLOCK == 0)
            a += p->a_next;
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < 2; v++)
            _mm512_storeu_ps(c + i * p->c_row + v * TILE, sum[i][v]);
}

void cpu_gemm_bf16_add(const cpu_gemm_bf16_t *p)
{
    const int64_t step = p->tiles ? CPU_BF16_BLOCK : ROWS;

    check(p->M % CPU_BF16_BLOCK == 0 && p->N % CPU_BF16_BLOCK == 0 &&
              p->K % CPU_BF16_BLOCK == 0,
          "sizes %d %d %d", (int)p->M, (int)p->N, (int)p->K);
    check(p->c_row >= p->N && p->b_row >= p->N, "rows overlap");
    for (int64_t i = 0; i < p->M; i += step)
        for (int64_t j = 0; j < p->N; j += CPU_BF16_BLOCK) {
            const cpu_bf16_t *a = p->a + i * p->a_row, *b = p->b + 2 * j;
            float *c = p->c + i * p->c_row + j;

            if (p->tiles)
                pairs_tiles(p, a, b, c);
            else
                pairs_vectors(p, a, b, c);
        }
}

/* ---- forms --------------------------------------------------------------- */

/* Load floats [at, at + 16) of the [features] at [from], with 0 for missing
 * ones. */
UNIT_BF16 static inline __m512 pairs_load(const float *from, int64_t at,
                                          int64_t features)
{
    const int64_t left = features - at;

    if (left >= TILE)
        return _mm512_loadu_ps(from + at);
    if (left <= 0)
        return _mm512_setzero_ps();
    return _mm512_maskz_loadu_ps((__mmask16)((1u << left) - 1), from + at);
}

/* Round 32 numbers of a row of [features], with 0 for missing ones. [whole]:
 * none are missing. */
UNIT_BF16 static inline __m512i pairs_round(const float *from, int64_t at,
                                            int64_t features, bool whole)
{
    if (whole)
        return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + at + TILE),
                                            _mm512_loadu_ps(from + at));
    return (__m512i)_mm512_cvtne2ps_pbh(pairs_load(from, at + TILE, features),
                                        pairs_load(from, at, features));
}

UNIT_BF16 void cpu_gemm_bf16_rows(cpu_rows_t from, int64_t features,
                                  cpu_bf16_t *rows)
{
    const int64_t count = from.count;
    const int64_t width = cpu_gemm_bf16_pad(features);
    const bool whole = features == width;

    check(count > 0 && count <= CPU_BF16_BLOCK, "%d tokens", (int)count);
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < width; d += CPU_BF16_BLOCK)
            _mm512_storeu_si512(
                rows + i * width + d,
                pairs_round(from.data + i * from.row, d, features, whole));
    memset(rows + count * width, 0,
           (size_t)((CPU_BF16_BLOCK - count) * width) * sizeof *rows);
}

/* Round and pack two rows, [even] and [odd]; NULL: a row of zeros. */
UNIT_BF16 static void pairs_pack_rows(const float *even, const float *odd,
                                      int64_t features, __m512i order,
                                      cpu_bf16_t *packed)
{
    const __m512 zero = _mm512_setzero_ps();
    int64_t d = 0;

    for (; odd != NULL && d + TILE <= features; d += TILE) {
        __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd + d),
                                                    _mm512_loadu_ps(even + d));

        _mm512_storeu_si512(packed + 2 * d,
                            _mm512_permutexvar_epi16(order, both));
    }
    for (; d < cpu_gemm_bf16_pad(features); d += TILE) {
        __m512 low = even == NULL ? zero : pairs_load(even, d, features);
        __m512 high = odd == NULL ? zero : pairs_load(odd, d, features);
        __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);

        _mm512_storeu_si512(packed + 2 * d,
                            _mm512_permutexvar_epi16(order, both));
    }
}

UNIT_BF16 void cpu_gemm_bf16_pack(cpu_rows_t from, int64_t features,
                                  cpu_bf16_t *packed)
{
    const int64_t count = from.count;
    const int64_t width = cpu_gemm_bf16_pad(features);
    uint16_t order[2 * TILE];

    check(count > 0 && count <= CPU_BF16_BLOCK, "%d tokens", (int)count);
    for (int i = 0; i < 2 * TILE; i++)
        order[i] = (uint16_t)(i / 2 + i % 2 * TILE);
    for (int64_t i = 0; i < CPU_BF16_BLOCK; i += 2)
        pairs_pack_rows(i < count ? from.data + i * from.row : NULL,
                        i + 1 < count ? from.data + (i + 1) * from.row : NULL,
                        features, _mm512_loadu_si512(order),
                        packed + i * width);
}

/* Transpose 16 x 16 elements, by exchanging ever larger squares. */
UNIT_BF16 static void pairs_transpose_square(const int32_t *from, int64_t row,
                                             int32_t *to, int64_t to_row)
{
    __m512i a[TILE], b[TILE];

    for (int i = 0; i < TILE; i++)
        a[i] = _mm512_loadu_si512(from + i * row);
    for (int i = 0; i < TILE; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < TILE; i += 4)
        for (int k = 0; k < 2; k++) {
            a[i + 2 * k] = _mm512_unpacklo_epi64(b[i + k], b[i + k + 2]);
            a[i + 2 * k + 1] = _mm512_unpackhi_epi64(b[i + k], b[i + k + 2]);
        }
    /* a[4 g + k] now has column 4 q + k of rows 4 g to 4 g + 3 in quarter q. */
    for (int k = 0; k < 4; k++) {
        __m512i even01 = _mm512_shuffle_i32x4(a[k], a[k + 4], 0x88);
        __m512i odd01 = _mm512_shuffle_i32x4(a[k], a[k + 4], 0xdd);
        __m512i even23 = _mm512_shuffle_i32x4(a[k + 8], a[k + 12], 0x88);
        __m512i odd23 = _mm512_shuffle_i32x4(a[k + 8], a[k + 12], 0xdd);

        b[k] = _mm512_shuffle_i32x4(even01, even23, 0x88);
        b[k + 8] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
        b[k + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
        b[k + 12] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
    for (int i = 0; i < TILE; i++)
        _mm512_storeu_si512(to + i * to_row, b[i]);
}

void cpu_gemm_bf16_transpose(const void *from, int64_t rows, int64_t columns,
                             void *to)
{
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < columns; j += TILE)
            pairs_transpose_square((const int32_t *)from + i * columns + j,
                                   columns, (int32_t *)to + j * rows + i, rows);
}

#else /* never called: simd_has_bf16() is false */

void cpu_gemm_bf16_begin(bool tiles)
{
    (void)tiles;
}

void cpu_gemm_bf16_end(bool tiles)
{
    (void)tiles;
}

void cpu_gemm_bf16_add(const cpu_gemm_bf16_t *product)
{
    (void)product;
    __builtin_unreachable();
}

void cpu_gemm_bf16_rows(cpu_rows_t from, int64_t features, cpu_bf16_t *rows)
{
    (void)from, (void)features, (void)rows;
    __builtin_unreachable();
}

void cpu_gemm_bf16_pack(cpu_rows_t from, int64_t features, cpu_bf16_t *packed)
{
    (void)from, (void)features, (void)packed;
    __builtin_unreachable();
}

void cpu_gemm_bf16_transpose(const void *from, int64_t rows, int64_t columns,
                             void *to)
{
    (void)from, (void)rows, (void)columns, (void)to;
    __builtin_unreachable();
}

#endif
