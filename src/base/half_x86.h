/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The conversions of half.h with the vector units of x86, if this CPU has them.
 * Each function returns how many elements it has converted, from the first on:
 * a multiple of the vector length, 0 on other CPUs. (internal to half.c)
 */
#ifndef CDDP_BASE_HALF_X86_H
#define CDDP_BASE_HALF_X86_H

#include <stddef.h>
#include <stdint.h>

size_t half_x86_widen_bf16(float *to, const uint16_t *from, size_t count);
size_t half_x86_widen_fp16(float *to, const uint16_t *from, size_t count);
size_t half_x86_round_bf16(uint16_t *to, const float *from, size_t count);
size_t half_x86_round_fp16(uint16_t *to, const float *from, size_t count);

#endif
