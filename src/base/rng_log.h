/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The logarithm of rng_normal, without branches, so that loops over it can be
 * vectorized. libm's logarithm is not used, since its bits change with its
 * version and with the vector unit it selects. (internal to rng.c and
 * rng_fill.c)
 */
#ifndef CDDP_BASE_RNG_LOG_H
#define CDDP_BASE_RNG_LOG_H

#include <stdint.h>
#include <string.h>

/* The bits of 1/sqrt 2, and of 2^52. A number below 2^32 in the mantissa of
 * 2^52 is added to it. */
#define RNG_LOG_ROOT UINT64_C(0x3fe6a09e667f3bcd)
#define RNG_LOG_SHIFT UINT64_C(0x4330000000000000)

/* Logarithm of a normal x in (0, 1]: the series of 2 atanh((m - 1) / (m + 1))
 * for the mantissa m in [1/sqrt 2, sqrt 2), with |s| < 0.1716 and an error
 * below 1e-17. */
static inline __attribute__((always_inline)) double rng_log(double x)
{
    uint64_t bits, above, power;
    double m, s, square, sum, exponent;

    memcpy(&bits, &x, sizeof bits);
    /* distance to 2^-1024 / sqrt 2 in powers of two; never negative */
    above = bits - RNG_LOG_ROOT + (UINT64_C(1024) << 52);
    power = above >> 52;
    bits -= (power << 52) - (UINT64_C(1024) << 52);
    memcpy(&m, &bits, sizeof m);
    power |= RNG_LOG_SHIFT;
    memcpy(&exponent, &power, sizeof exponent);
    exponent -= 0x1p52 + 1024;
    s = (m - 1) / (m + 1);
    square = s * s;
    sum = 1.0 / 21;
    sum = sum * square + 1.0 / 19;
    sum = sum * square + 1.0 / 17;
    sum = sum * square + 1.0 / 15;
    sum = sum * square + 1.0 / 13;
    sum = sum * square + 1.0 / 11;
    sum = sum * square + 1.0 / 9;
    sum = sum * square + 1.0 / 7;
    sum = sum * square + 1.0 / 5;
    sum = sum * square + 1.0 / 3;
    sum = sum * square + 1.0;
    return 2 * s * sum + exponent * 0.69314718055994530942;
}

#endif
