/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Numbers of the types that the libraries multiply. */
#ifndef CDDP_TESTS_CUDA_FAKE_NUMBER_H
#define CDDP_TESTS_CUDA_FAKE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Where numbers lie, and how they are rounded before they are multiplied. */
typedef struct fake_numbers {
    void *at;
    bool bf16; /* else float32 */
    bool tf32; /* float32 that is rounded to tf32 */
} fake_numbers_t;

static inline float fake_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Keep [kept] of the 23 bits of the mantissa, to nearest, ties to even. */
static inline float fake_round(float value, int kept)
{
    const uint32_t drop = 23 - (uint32_t)kept;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000) == 0x7f800000) /* infinite or NaN */
        return value;
    bits += (1U << (drop - 1)) - 1 + (bits >> drop & 1);
    return fake_float(bits >> drop << drop);
}

static inline float fake_load(const fake_numbers_t *numbers, int64_t i)
{
    float value;

    if (numbers->bf16)
        return fake_float((uint32_t)((const uint16_t *)numbers->at)[i] << 16);
    value = ((const float *)numbers->at)[i];
    return numbers->tf32 ? fake_round(value, 10) : value;
}

static inline void fake_store(const fake_numbers_t *numbers, int64_t i,
                              double value)
{
    float rounded = (float)value;
    uint32_t bits;

    if (!numbers->bf16) {
        ((float *)numbers->at)[i] = rounded;
        return;
    }
    rounded = fake_round(rounded, 7);
    memcpy(&bits, &rounded, sizeof bits);
    if (rounded != rounded)
        bits |= 0x00400000; /* a NaN keeps a bit */
    ((uint16_t *)numbers->at)[i] = (uint16_t)(bits >> 16);
}

#endif
