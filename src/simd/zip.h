/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Split a line of floats into its even and its odd elements, and interleave
 * two lines, SIMD_ZIP elements at a time. Compilers vectorise such loops badly
 * or not at all.
 */
#ifndef CDDP_SIMD_ZIP_H
#define CDDP_SIMD_ZIP_H

#include "simd/math.h"

#define SIMD_ZIP 16

typedef float simd_zip_t __attribute__((vector_size(4 * SIMD_ZIP)));

/* A vector with elements chosen from two vectors of SIMD_ZIP floats; 0 to 15
 * are elements of [a], 16 to 31 elements of [b]. */
#if defined(__clang__) || __GNUC__ >= 12
#define SIMD_ZIP_MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int32_t simd_zip_order_t __attribute__((vector_size(4 * SIMD_ZIP)));
#define SIMD_ZIP_MIX(a, b, ...) \
    __builtin_shuffle(a, b, (simd_zip_order_t){__VA_ARGS__})
#endif

/* Index of the vector after the one at [i]. The last vector ends at [last] and
 * may overlap the vector before it, so results must be stored, not added. */
SIMD_INLINE int64_t simd_zip_next(int64_t i, int64_t last)
{
    const int64_t next = i + SIMD_ZIP;

    return next < last && next + SIMD_ZIP > last ? last - SIMD_ZIP : next;
}

/* to[i] = from[2 i]. Does not read beyond from[30]. */
SIMD_INLINE void simd_unzip(const float *from, float to[SIMD_ZIP])
{
    simd_zip_t a, b;

    memcpy(&a, from, sizeof a);
    memcpy(&b, from + SIMD_ZIP - 1, sizeof b);
    a = SIMD_ZIP_MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27,
                     29, 31);
    memcpy(to, &a, sizeof a);
}

/* to[2 i] = even[i], to[2 i + 1] = odd[i] */
SIMD_INLINE void simd_zip(const float even[SIMD_ZIP], const float odd[SIMD_ZIP],
                          float *to)
{
    simd_zip_t a, b, low, high;

    memcpy(&a, even, sizeof a);
    memcpy(&b, odd, sizeof b);
    low = SIMD_ZIP_MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                       23);
    high = SIMD_ZIP_MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                        30, 15, 31);
    memcpy(to, &low, sizeof low);
    memcpy(to + SIMD_ZIP, &high, sizeof high);
}

#endif
