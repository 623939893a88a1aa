/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Functions of one float without branches, so that loops over them can be
 * vectorised. The relative error is about 2e-7. NaN stays NaN.
 */
#ifndef CDDP_SIMD_MATH_H
#define CDDP_SIMD_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Number of partial sums of a long sum, which are kept in vector registers. It
 * is fixed, so that every CPU adds in the same order. */
#define SIMD_LANES 16

/* (exp(r) - 1 - r) / r^2 for |r| < 0.35; coefficients of Cephes' expf. */
SIMD_INLINE float simd_math_tail(float r)
{
    float p = 1.9875691500e-4f;

    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    return p * r + 5.0000001201e-1f;
}

/*
 * exp(x) for x from -87 to 88; a smaller or larger x gives the value at that
 * end. Computed as 2^n times a polynomial of the remainder. Adding 1.5 * 2^23
 * rounds n to an integer, which is then in the low bits.
 */
SIMD_INLINE float simd_math_exp(float x)
{
    float low = x < -87.0f ? -87.0f : x;
    float z = low > 88.0f ? 88.0f : low;
    float t = z * 1.44269504f + 12582912.0f;
    float n = t - 12582912.0f;
    float r = z - n * 0.693359375f + n * 2.12194440e-4f;
    float p = simd_math_tail(r) * r * r + r + 1.0f;
    uint32_t bits;

    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 127u) << 23;
    memcpy(&n, &bits, sizeof n);
    return p * n;
}

/* exp(x) - 1, accurate near 0. */
SIMD_INLINE float simd_math_expm1(float x)
{
    float near = simd_math_tail(x) * x * x + x;
    float far = simd_math_exp(x) - 1.0f;

    return fabsf(x) < 0.34f ? near : far;
}

SIMD_INLINE float simd_math_sigmoid(float x)
{
    return 1.0f / (1.0f + simd_math_exp(-x));
}

SIMD_INLINE float simd_math_tanh(float x)
{
    float z = x * x;
    float p = -5.70498872745e-3f;
    float far = 1.0f - 2.0f / (simd_math_exp(2.0f * x) + 1.0f);

    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return fabsf(x) < 0.625f ? p * z * x + x : far;
}

/* log(1 + u) for u in [0, 1], by the series of 2 artanh(u / (2 + u)). */
SIMD_INLINE float simd_math_log1p(float u)
{
    float s = u / (2.0f + u), z = s * s;
    float p = 1.0f / 15;

    p = p * z + 1.0f / 13;
    p = p * z + 1.0f / 11;
    p = p * z + 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    return 2.0f * s * (p * z + 1.0f);
}

/*
 * The distribution function of the standard normal, erfc(-x / sqrt 2) / 2.
 * erfc is approximated by the well-known t exp(-z^2 + polynomial of t), t =
 * 1/(1 + z/2). The relative error is small in the lower tail, too.
 */
SIMD_INLINE float simd_math_normal(float x)
{
    float z = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f, tail;

    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    tail = 0.5f * t * simd_math_exp(p - z * z);
    return x < 0 ? tail : 1.0f - tail;
}

#endif
