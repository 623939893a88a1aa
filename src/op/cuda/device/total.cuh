/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums over all elements, in two steps: a fixed number of blocks, which depends
 * on the shape alone, writes a partial sum each; one block adds these.
 */
#ifndef CDDP_OP_CUDA_DEVICE_TOTAL_CUH
#define CDDP_OP_CUDA_DEVICE_TOTAL_CUH

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/reduce.cuh"

/* Maximum of partial sums. */
#define TOTAL_BLOCKS 1024

/* Number of blocks for [items], if a block takes at least [each]. */
static inline unsigned total_blocks(int64_t items, int64_t each)
{
    const unsigned blocks = each_blocks(items, each);

    return blocks < TOTAL_BLOCKS ? blocks : TOTAL_BLOCKS;
}

/* Thread 0 of each block writes the sum of [value] over the block to
 * partials[block]. */
static __device__ __forceinline__ void total_put(double value, double *partials)
{
    __shared__ double part[32];
    const double sum = block_sum(value, part);

    if (block_thread() == 0)
        partials[blockIdx.x] = sum;
}

/* Block b adds the partials b * count .. (b + 1) * count - 1 to out[b], where
 * out is split, as the results are apart in memory. */
static __global__ void __launch_bounds__(EACH_THREADS)
    total_run(const double *partials, unsigned count, double *first,
              double *second)
{
    __shared__ double part[32];
    double sum = 0;

    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        sum += partials[blockIdx.x * count + i];
    sum = block_sum(sum, part);
    if (threadIdx.x == 0)
        *(blockIdx.x == 0 ? first : second) = sum;
}

/* *first = the sum of the first [count] partials; *second, unless NULL, = that
 * of the next. */
static inline void total_start(const double *partials, unsigned count,
                               double *first, double *second,
                               cudaStream_t stream)
{
    LAUNCH(total_run, second == NULL ? 1 : 2, EACH_THREADS, 0, stream, partials,
           count, first, second);
}

#endif
