/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Indices. Most numbers fit 32 bits, of which a GPU divides several times as
 * many in a second as of 64 bits. */
#ifndef CDDP_OP_CUDA_DEVICE_INDEX_CUH
#define CDDP_OP_CUDA_DEVICE_INDEX_CUH

#include "op/cuda/launch.h"

/* a / b for a >= 0, b > 0. */
static __device__ __forceinline__ int64_t index_div(int64_t a, int64_t b)
{
    if (((a | b) >> 32) == 0)
        return (int64_t)((uint32_t)a / (uint32_t)b);
    return a / b;
}

/* *a = a / b; returns the rest. */
static __device__ __forceinline__ int64_t index_split(int64_t *a, int64_t b)
{
    const int64_t whole = index_div(*a, b), rest = *a - whole * b;

    *a = whole;
    return rest;
}

#endif
