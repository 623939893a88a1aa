/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Division of indices by sizes. A GPU divides integers of 64 bits by calling a
 * function of about 70 instructions. So the host computes a factor of each
 * size once, and a kernel multiplies instead: a / by is the upper half of the
 * product (2 * a) * factor, shifted to the right by [shift]. With factor =
 * ceil(2^(63 + shift) / by) and by <= 2^shift this is exact for 0 <= a < 2^63
 * (Granlund and Montgomery, Division by Invariant Integers using
 * Multiplication, 1994).
 */
#ifndef CDDP_OP_CUDA_DEVICE_INDEX_CUH
#define CDDP_OP_CUDA_DEVICE_INDEX_CUH

#include <stdint.h>

#include "op/cuda/launch.h"

typedef struct index_divisor {
    int64_t by; /* above 0 */
    uint64_t factor;
    int shift;
} index_divisor_t;

/* For the host. [by] is above 0. */
static inline index_divisor_t index_divisor_of(int64_t by)
{
    index_divisor_t divisor = {by, 0, 0};
    unsigned __int128 rest; /* in the end factor - 2^63 */

    while ((uint64_t)1 << divisor.shift < (uint64_t)by)
        divisor.shift++;
    rest = ((uint64_t)1 << divisor.shift) - (uint64_t)by;
    rest = ((rest << 63) + (uint64_t)by - 1) / (uint64_t)by;
    divisor.factor = ((uint64_t)1 << 63) + (uint64_t)rest;
    return divisor;
}

/* a / b.by for a >= 0. */
static __device__ __forceinline__ int64_t index_div(int64_t a,
                                                    const index_divisor_t &b)
{
    return (int64_t)(__umul64hi((uint64_t)a << 1, b.factor) >> b.shift);
}

/* *a = a / b.by; returns the rest. */
static __device__ __forceinline__ int64_t index_split(int64_t *a,
                                                      const index_divisor_t &b)
{
    const int64_t whole = index_div(*a, b), rest = *a - whole * b.by;

    *a = whole;
    return rest;
}

#endif
