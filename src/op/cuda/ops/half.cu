/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op_half: round gradients to 16-bit floats, and keep the rounding errors. */
#include <cuda_fp16.h>

#include "op/cuda/device/each.cuh"
#include "op/op_half.h"

namespace
{

struct format_bf16 {
    static __device__ __forceinline__ unsigned round(float x)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }

    static __device__ __forceinline__ float widen(unsigned bits)
    {
        return __uint_as_float(bits << 16);
    }
};

struct format_fp16 {
    static __device__ __forceinline__ unsigned round(float x)
    {
        return __half_as_ushort(__float2half_rn(x));
    }

    static __device__ __forceinline__ float widen(unsigned bits)
    {
        return __half2float(__ushort_as_half((unsigned short)bits));
    }
};

/* Load N numbers of 16 bits. A pack of 8 numbers is loaded by one access. */
template <int N>
static __device__ __forceinline__ void bits_load(const uint16_t *from,
                                                 unsigned (&to)[N])
{
    if constexpr (N == 8) {
        const uint4 four = *reinterpret_cast<const uint4 *>(from);
        const unsigned pairs[] = {four.x, four.y, four.z, four.w};

        for (int k = 0; k < N; k++)
            to[k] = k % 2 == 0 ? pairs[k / 2] & 0xffffu : pairs[k / 2] >> 16;
    } else {
        for (int k = 0; k < N; k++)
            to[k] = from[k];
    }
}

template <int N>
static __device__ __forceinline__ void bits_store(uint16_t *to,
                                                  const unsigned (&from)[N])
{
    if constexpr (N == 8) {
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(from[0] | from[1] << 16, from[2] | from[3] << 16,
                       from[4] | from[5] << 16, from[6] | from[7] << 16);
    } else {
        for (int k = 0; k < N; k++)
            to[k] = (uint16_t)from[k];
    }
}

/* Limit a finite x to the magnitude [largest]. Infinity and NaN stay as they
 * are. */
static __device__ __forceinline__ float bounded(float x, float largest)
{
    if (x > largest && x < INFINITY)
        return largest;
    return x < -largest && x > -INFINITY ? -largest : x;
}

template <typename Format> struct round_work {
    op_half_t half;

    template <int N> __device__ void at(int64_t i) const
    {
        float exact[N], kept[N] = {};
        unsigned bits[N];

        pack_load(half.grads + i, exact);
        if (half.residual != NULL)
            pack_load(half.residual + i, kept);
        for (int k = 0; k < N; k++) {
            if (half.residual != NULL)
                exact[k] += kept[k];
            bits[k] = Format::round(bounded(exact[k], half.largest));
            kept[k] = exact[k] - Format::widen(bits[k]);
        }
        bits_store(half.sent + i, bits);
        if (half.residual != NULL)
            pack_store(half.residual + i, kept);
    }
};

template <typename Format> struct widen_work {
    op_half_t half;

    template <int N> __device__ void at(int64_t i) const
    {
        unsigned bits[N];
        float wide[N];

        bits_load(half.sent + i, bits);
        for (int k = 0; k < N; k++)
            wide[k] = Format::widen(bits[k]);
        pack_store(half.grads + i, wide);
    }
};

} // namespace

template <typename Format>
static void half_start(const op_half_t *half, bool widen, cudaStream_t stream)
{
    const int64_t count = (int64_t)half->count;
    const bool wide = pack_aligned(half->grads, half->sent, half->residual);

    if (widen)
        each_start<8>(widen_work<Format>{*half}, count, wide, stream);
    else
        each_start<8>(round_work<Format>{*half}, count, wide, stream);
}

extern "C" err_code_t cuda_half(const op_half_t *half, bool widen,
                                dev_stream_t *stream, err_t *err)
{
    if (half->bf16)
        half_start<format_bf16>(half, widen, dev_cuda_stream(stream));
    else
        half_start<format_fp16>(half, widen, dev_cuda_stream(stream));
    return cuda_kernel_started(cudaGetLastError(), "rounds gradients", err);
}
