/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums and largest values over a warp or a block, in a fixed order: the same
 * values give the same bits. All threads of the warp or block call, and all
 * receive the result. The size of the block is a multiple of 32, at most 1024.
 */
#ifndef CDDP_OP_CUDA_DEVICE_REDUCE_CUH
#define CDDP_OP_CUDA_DEVICE_REDUCE_CUH

#include "op/cuda/launch.h"

/* Keeps a NaN of either, unlike fmaxf. */
template <class T> __device__ __forceinline__ T larger(T a, T b)
{
    return a > b || a != a ? a : b;
}

template <class T> __device__ __forceinline__ T warp_sum(T value)
{
#pragma unroll
    for (int bit = 16; bit > 0; bit >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, bit);
    return value;
}

template <class T> __device__ __forceinline__ T warp_max(T value)
{
#pragma unroll
    for (int bit = 16; bit > 0; bit >>= 1)
        value = larger(value, __shfl_xor_sync(0xffffffffu, value, bit));
    return value;
}

/* The number of the thread in its block, and how many it has. */
__device__ __forceinline__ unsigned block_thread()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

__device__ __forceinline__ unsigned block_threads()
{
    return blockDim.x * blockDim.y * blockDim.z;
}

/* [part] is shared memory for 32 values; it may be used again as soon as the
 * function has returned. */
template <class T> __device__ __forceinline__ T block_sum(T value, T *part)
{
    const unsigned thread = block_thread(), lane = thread % 32;
    const unsigned warps = block_threads() / 32;

    value = warp_sum(value);
    if (lane == 0)
        part[thread / 32] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? part[lane] : T(0));
    __syncthreads();
    return value;
}

template <class T> __device__ __forceinline__ T block_max(T value, T *part)
{
    const unsigned thread = block_thread(), lane = thread % 32;
    const unsigned warps = block_threads() / 32;

    value = warp_max(value);
    if (lane == 0)
        part[thread / 32] = value;
    __syncthreads();
    value = warp_max(part[lane < warps ? lane : 0]);
    __syncthreads();
    return value;
}

#endif
