/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Integer arithmetic on the bits, without branches, so that compilers can
 * vectorize it. The two remaining floating-point additions are exact or round
 * correctly, and use normal numbers only.
 */
#include "base/half.h"

#include <string.h>

#include "base/half_x86.h"

static inline uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

void half_widen_bf16(float *to, const uint16_t *from, size_t count)
{
    for (size_t i = half_x86_widen_bf16(to, from, count); i < count; i++)
        to[i] = float_of((uint32_t)from[i] << 16);
}

/* Round: add half of the last kept bit, minus one bit if the result would be
 * even. */
static inline uint16_t bf16_of(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan = bits >> 16 | 0x40u; /* quiet */

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

void half_round_bf16(uint16_t *to, const float *from, size_t count)
{
    for (size_t i = half_x86_round_bf16(to, from, count); i < count; i++)
        to[i] = bf16_of(bits_of(from[i]));
}

/* The difference of the exponents' biases. */
#define FP16_BIAS ((127u - 15u) << 23)
/* The smallest normal fp16, as float32. */
#define FP16_LEAST (113u << 23)
/* The smallest float32 beyond the range of fp16. */
#define FP16_BEYOND ((127u + 16u) << 23)
/* The last bit of this float32 has the weight of the last bit of a subnormal
 * fp16. */
#define FP16_SUBNORMAL ((127u - 1u) << 23)

static inline float float_of_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t normal = magnitude + FP16_BIAS;
    uint32_t special = magnitude | 0x7f800000u;
    uint32_t subnormal =
        bits_of(float_of(magnitude | FP16_LEAST) - float_of(FP16_LEAST));
    uint32_t bits = magnitude < 1u << 23 ? subnormal : normal;

    bits = magnitude >= 0x1fu << 23 ? special : bits;
    return float_of(sign | bits);
}

void half_widen_fp16(float *to, const uint16_t *from, size_t count)
{
    for (size_t i = half_x86_widen_fp16(to, from, count); i < count; i++)
        to[i] = float_of_fp16(from[i]);
}

static inline uint16_t fp16_of(uint32_t all)
{
    uint32_t sign = all >> 16 & 0x8000u, bits = all & 0x7fffffffu;
    uint32_t normal = (bits - FP16_BIAS + 0xfffu + (bits >> 13 & 1u)) >> 13;
    uint32_t special = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    /* The floating-point addition rounds. */
    uint32_t subnormal =
        bits_of(float_of(bits) + float_of(FP16_SUBNORMAL)) - FP16_SUBNORMAL;
    uint32_t half = bits < FP16_LEAST ? subnormal : normal;

    half = bits >= FP16_BEYOND ? special : half;
    return (uint16_t)(sign | half);
}

void half_round_fp16(uint16_t *to, const float *from, size_t count)
{
    for (size_t i = half_x86_round_fp16(to, from, count); i < count; i++)
        to[i] = fp16_of(bits_of(from[i]));
}
