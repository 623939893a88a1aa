/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums of squares in the order of the place "cpu" (optim/cpu/norm.c): of a
 * block of elements, SQUARES_LANES partial sums in float64, each of which one
 * thread computes; then the partial sums one after the other, then the elements
 * that are left over. And sums along a binary tree over the numbers of blocks.
 */
#ifndef CDDP_OPTIM_CUDA_SQUARES_CUH
#define CDDP_OPTIM_CUDA_SQUARES_CUH

#include "op/cuda/launch.h"
#include "optim/cuda/cuda.h"

#define SQUARES_LANES 8
#define SQUARES_THREADS 256
/* Blocks of elements that a CUDA block treats at once. */
#define SQUARES_GROUPS (SQUARES_THREADS / SQUARES_LANES)

static __device__ __forceinline__ double square(float x)
{
    return (double)x * (double)x;
}

/* The sum over a block of elements. [lane] is this thread's partial sum, and
 * [left] its element of those left over, of which there are [lefts]. All
 * threads of the warp call. */
static __device__ __forceinline__ double squares_join(double lane, float left,
                                                      int lefts)
{
    double sum = 0;

    for (int l = 0; l < SQUARES_LANES; l++)
        sum += __shfl_sync(0xffffffffu, lane, l, SQUARES_LANES);
    for (int l = 0; l < SQUARES_LANES; l++) {
        const float x = __shfl_sync(0xffffffffu, left, l, SQUARES_LANES);

        if (l < lefts)
            sum += square(x);
    }
    return sum;
}

/*
 * Add up [count] numbers along the tree: neighbours, then neighbouring pairs,
 * and so on; what has no neighbour is kept. [at] is shared memory for [count]
 * numbers, at most CUDA_CHUNK, and has their sum in at[0] afterwards. All
 * threads of the block call.
 */
static __device__ __forceinline__ void chunk_add(double *at, int count)
{
    for (int half = 1; half < count; half *= 2) {
        __syncthreads();
        for (int i = 2 * half * (int)threadIdx.x; i + half < count;
             i += 2 * half * (int)blockDim.x)
            at[i] += at[i + half];
    }
    __syncthreads();
}

#endif
