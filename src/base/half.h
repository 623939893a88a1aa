/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * half: floats of 16 bits as they lie in memory. bf16 is the upper half of a
 * float; fp16 is binary16 of IEEE 754. Widening is exact. Narrowing rounds to
 * nearest, ties to even, as IEEE 754 does: what is too large becomes infinity,
 * and a NaN stays one (of what payload depends on the CPU). Subnormal numbers
 * are kept whatever the mode of the floating-point unit. All else is the same
 * on every CPU.
 */
#ifndef CDDP_BASE_HALF_H
#define CDDP_BASE_HALF_H

#include <stddef.h>
#include <stdint.h>

/* [count] elements; the two arrays do not overlap. */
void half_widen_bf16(float *to, const uint16_t *from, size_t count);
void half_widen_fp16(float *to, const uint16_t *from, size_t count);
void half_round_bf16(uint16_t *to, const float *from, size_t count);
void half_round_fp16(uint16_t *to, const float *from, size_t count);

#endif
