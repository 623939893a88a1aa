/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The winners of maxpool's windows. For up to CPU_WINNER_LANES windows or
 * channels, stores the largest element so far and the number of its tap
 * (bfloat16: below 2^15). A NaN wins its window, and of equal numbers the
 * first wins. bfloat16 numbers are compared as integers that have the same
 * order. The code uses vectors of a fixed length, which stay in registers;
 * compilers do not vectorise such short loops.
 */
#ifndef CDDP_OP_CPU_OPS_WINNER_H
#define CDDP_OP_CPU_OPS_WINNER_H

#include "simd/zip.h"

#define CPU_WINNER_LANES 32
#define CPU_WINNER_WIDE 8  /* floats per vector */
#define CPU_WINNER_HALF 16 /* bfloat16 numbers per vector */

typedef float cpu_wide_t __attribute__((vector_size(32)));
typedef int32_t cpu_wide_int_t __attribute__((vector_size(32)));
typedef int16_t cpu_half_int_t __attribute__((vector_size(32)));
typedef uint16_t cpu_half_bits_t __attribute__((vector_size(16)));
typedef uint8_t cpu_byte8_t __attribute__((vector_size(8)));
typedef uint8_t cpu_byte16_t __attribute__((vector_size(16)));
typedef uint8_t cpu_byte32_t __attribute__((vector_size(32)));
typedef uint64_t cpu_long_t __attribute__((vector_size(32)));

#if defined(__clang__) || __GNUC__ >= 12
#define CPU_BYTE_MIX(a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)
#else
#define CPU_BYTE_MIX(a, ...) __builtin_shuffle(a, (cpu_byte32_t){__VA_ARGS__})
#endif

typedef struct cpu_winner {
    cpu_wide_t best[CPU_WINNER_LANES / CPU_WINNER_WIDE];
    cpu_wide_int_t which[CPU_WINNER_LANES / CPU_WINNER_WIDE];
} cpu_winner_t;

typedef struct cpu_winner_half {
    cpu_half_int_t best[CPU_WINNER_LANES / CPU_WINNER_HALF];
    cpu_half_int_t which[CPU_WINNER_LANES / CPU_WINNER_HALF];
} cpu_winner_half_t;

/* Number of bytes to copy at offset [at] of [bytes]: at most 32. */
SIMD_INLINE size_t cpu_winner_bytes(int at, int bytes)
{
    return (size_t)(bytes - at < 32 ? bytes - at : 32);
}

/* Start with -infinity as the largest element, of tap [first]. */
SIMD_INLINE void cpu_winner_begin(cpu_winner_t *winner, int first)
{
    for (int j = 0; j * CPU_WINNER_WIDE < CPU_WINNER_LANES; j++) {
        winner->best[j] = (cpu_wide_t){0} - INFINITY;
        winner->which[j] = (cpu_wide_int_t){0} + first;
    }
}

SIMD_INLINE void cpu_winner_half_begin(cpu_winner_half_t *winner, int first)
{
    for (int j = 0; j * CPU_WINNER_HALF < CPU_WINNER_LANES; j++) {
        winner->best[j] = (cpu_half_int_t){0} - 0x7f80;
        winner->which[j] = (cpu_half_int_t){0} + (int16_t)first;
    }
}

/* Compare the [n] elements at [tap], which belong to tap [k], with the largest
 * so far. */
SIMD_INLINE void cpu_winner_take(cpu_winner_t *winner, const float *tap, int n,
                                 int k)
{
    for (int j = 0; j * CPU_WINNER_WIDE < n; j++) {
        const cpu_wide_t best = winner->best[j];
        cpu_wide_t value = {0};
        cpu_wide_int_t better;

        memcpy(&value, tap + j * CPU_WINNER_WIDE,
               cpu_winner_bytes(32 * j, 4 * n));
        /* false where best is NaN, which nothing beats
         * NOLINTNEXTLINE(misc-redundant-expression) */
        better = (best == best) & ~(value <= best);
        winner->best[j] = (cpu_wide_t)(((cpu_wide_int_t)value & better) |
                                       ((cpu_wide_int_t)best & ~better));
        winner->which[j] = (k & better) | (winner->which[j] & ~better);
    }
}

/* The bfloat16 version. 0 and -0 are equal, and NaN is above all numbers. */
SIMD_INLINE void cpu_winner_half_take(cpu_winner_half_t *winner,
                                      const uint16_t *tap, int n, int k)
{
    for (int j = 0; j * CPU_WINNER_HALF < n; j++) {
        cpu_half_int_t bits = {0}, sign, size, key, mask;

        memcpy(&bits, tap + j * CPU_WINNER_HALF,
               cpu_winner_bytes(32 * j, 2 * n));
        sign = bits >> 15;
        size = bits & 0x7fff;
        key = (size ^ sign) - sign;
        mask = size > 0x7f80;
        key = (key & ~mask) | (mask & 0x7fff);
        mask = key > winner->best[j];
        winner->best[j] = (key & mask) | (winner->best[j] & ~mask);
        winner->which[j] = (winner->which[j] & ~mask) | (mask & (int16_t)k);
    }
}

/* Write the largest elements and the numbers of their taps as bytes. [which]
 * may be NULL. */
SIMD_INLINE void cpu_winner_end(const cpu_winner_t *winner, int n, float *y,
                                uint8_t *which)
{
    for (int j = 0; j * CPU_WINNER_WIDE < n; j++) {
        const size_t bytes = cpu_winner_bytes(32 * j, 4 * n);
        const cpu_byte8_t numbers =
            __builtin_convertvector(winner->which[j], cpu_byte8_t);

        memcpy(y + j * CPU_WINNER_WIDE, &winner->best[j], bytes);
        if (which != NULL)
            memcpy(which + j * CPU_WINNER_WIDE, &numbers, bytes / 4);
    }
}

SIMD_INLINE void cpu_winner_half_end(const cpu_winner_half_t *winner, int n,
                                     uint16_t *y, uint8_t *which)
{
    for (int j = 0; j * CPU_WINNER_HALF < n; j++) {
        const size_t bytes = cpu_winner_bytes(32 * j, 2 * n);
        const cpu_half_int_t key = winner->best[j], sign = key >> 15;
        const cpu_half_int_t half = ((key ^ sign) - sign) | (sign & INT16_MIN);
        const cpu_byte16_t numbers =
            __builtin_convertvector(winner->which[j], cpu_byte16_t);

        memcpy(y + j * CPU_WINNER_HALF, &half, bytes);
        if (which != NULL)
            memcpy(which + j * CPU_WINNER_HALF, &numbers, bytes / 2);
    }
}

/* Expand up to CPU_WINNER_WIDE stored winners: each of the four bytes of
 * out[i] becomes which[i]. */
SIMD_INLINE void cpu_winner_expand(const uint8_t *which, int n,
                                   cpu_wide_int_t *out)
{
    uint64_t bytes = 0;
    cpu_byte32_t all;

    memcpy(&bytes, which, (size_t)n);
    all = (cpu_byte32_t)((cpu_long_t){0} + bytes);
    *out = (cpu_wide_int_t)CPU_BYTE_MIX(all, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2,
                                        3, 3, 3, 3, 20, 20, 20, 20, 21, 21, 21,
                                        21, 22, 22, 22, 22, 23, 23, 23, 23);
}

/* Return [n] elements that are [step] apart as a contiguous array: [x] itself
 * if step is 1, else [buffer]. */
SIMD_INLINE const float *cpu_winner_read(const float *x, int64_t step, int n,
                                         float buffer[CPU_WINNER_LANES])
{
    if (step == 1)
        return x;
    if (step == 2 && n == SIMD_ZIP)
        simd_unzip(x, buffer);
    else
        for (int i = 0; i < n; i++)
            buffer[i] = x[i * step];
    return buffer;
}

#endif
