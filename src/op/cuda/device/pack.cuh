/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Packs: N neighbouring elements of a tensor, which a thread holds in registers
 * as float32. With N of 4 or 8, and an address that is a multiple of 16, a pack
 * is one access, or two of float32 with N of 8. With N of 1 any address will
 * do.
 */
#ifndef CDDP_OP_CUDA_DEVICE_PACK_CUH
#define CDDP_OP_CUDA_DEVICE_PACK_CUH

#include <cuda_bf16.h>

#include "op/cuda/cuda.h"
#include "op/cuda/launch.h"

typedef __nv_bfloat16 bf16_t;

template <int N>
static __device__ __forceinline__ void pack_load(const float *from,
                                                 float (&to)[N])
{
    if constexpr (N % 4 == 0) {
        for (int k = 0; k < N / 4; k++) {
            const float4 four = reinterpret_cast<const float4 *>(from)[k];

            to[4 * k] = four.x;
            to[4 * k + 1] = four.y;
            to[4 * k + 2] = four.z;
            to[4 * k + 3] = four.w;
        }
    } else {
        for (int k = 0; k < N; k++)
            to[k] = from[k];
    }
}

template <int N>
static __device__ __forceinline__ void pack_store(float *to,
                                                  const float (&from)[N])
{
    if constexpr (N % 4 == 0) {
        for (int k = 0; k < N / 4; k++)
            reinterpret_cast<float4 *>(to)[k] = make_float4(
                from[4 * k], from[4 * k + 1], from[4 * k + 2], from[4 * k + 3]);
    } else {
        for (int k = 0; k < N; k++)
            to[k] = from[k];
    }
}

/* Two numbers of bfloat16 in 32 bits. */
static __device__ __forceinline__ void pack_split(unsigned pair, float *to)
{
    to[0] = __uint_as_float(pair << 16);
    to[1] = __uint_as_float(pair & 0xffff0000u);
}

static __device__ __forceinline__ unsigned pack_pair(const float *from)
{
    const unsigned a = __bfloat16_as_ushort(__float2bfloat16_rn(from[0]));
    const unsigned b = __bfloat16_as_ushort(__float2bfloat16_rn(from[1]));

    return a | b << 16;
}

template <int N>
static __device__ __forceinline__ void pack_load(const bf16_t *from,
                                                 float (&to)[N])
{
    if constexpr (N % 8 == 0) {
        for (int k = 0; k < N / 8; k++) {
            const uint4 bits = reinterpret_cast<const uint4 *>(from)[k];

            pack_split(bits.x, to + 8 * k);
            pack_split(bits.y, to + 8 * k + 2);
            pack_split(bits.z, to + 8 * k + 4);
            pack_split(bits.w, to + 8 * k + 6);
        }
    } else if constexpr (N == 4) {
        const uint2 bits = *reinterpret_cast<const uint2 *>(from);

        pack_split(bits.x, to);
        pack_split(bits.y, to + 2);
    } else {
        for (int k = 0; k < N; k++)
            to[k] = __bfloat162float(from[k]);
    }
}

template <int N>
static __device__ __forceinline__ void pack_store(bf16_t *to,
                                                  const float (&from)[N])
{
    if constexpr (N % 8 == 0) {
        for (int k = 0; k < N / 8; k++)
            reinterpret_cast<uint4 *>(to)[k] = make_uint4(
                pack_pair(from + 8 * k), pack_pair(from + 8 * k + 2),
                pack_pair(from + 8 * k + 4), pack_pair(from + 8 * k + 6));
    } else if constexpr (N == 4) {
        *reinterpret_cast<uint2 *>(to) =
            make_uint2(pack_pair(from), pack_pair(from + 2));
    } else {
        for (int k = 0; k < N; k++)
            to[k] = __float2bfloat16_rn(from[k]);
    }
}

/* One element. */
static __device__ __forceinline__ float pack_get(const float *from, int64_t i)
{
    return from[i];
}

static __device__ __forceinline__ float pack_get(const bf16_t *from, int64_t i)
{
    return __bfloat162float(from[i]);
}

static __device__ __forceinline__ void pack_put(float *to, int64_t i,
                                                float value)
{
    to[i] = value;
}

static __device__ __forceinline__ void pack_put(bf16_t *to, int64_t i,
                                                float value)
{
    to[i] = __float2bfloat16_rn(value);
}

/* Are all addresses multiples of 16? NULL is one. */
template <typename... Pointers> static bool pack_aligned(Pointers... pointers)
{
    return ((reinterpret_cast<uintptr_t>(pointers) | ...) & 15) == 0;
}

#endif
