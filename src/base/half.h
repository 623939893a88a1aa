/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * half: conversion of arrays of 16-bit floats. bf16 is the upper half of a
 * float32; fp16 is binary16 of IEEE 754. Conversion to float32 is exact.
 * Rounding to 16 bits is to nearest, ties to even, as in IEEE 754: values that
 * are too large become infinity, and a NaN stays a NaN (its payload depends on
 * the CPU). Subnormal numbers are kept in every mode of the floating-point
 * unit. Otherwise the results are the same on every CPU.
 */
#ifndef CDDP_BASE_HALF_H
#define CDDP_BASE_HALF_H

#include <stddef.h>
#include <stdint.h>

/* Convert [count] elements. The two arrays must not overlap. */
void half_widen_bf16(float *to, const uint16_t *from, size_t count);
void half_widen_fp16(float *to, const uint16_t *from, size_t count);
void half_round_bf16(uint16_t *to, const float *from, size_t count);
void half_round_fp16(uint16_t *to, const float *from, size_t count);

#endif
