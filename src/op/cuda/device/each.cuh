/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Kernels that treat all elements alike. Such a kernel is a struct, copied to
 * the device, whose function at<N>(i) computes the elements i .. i + N - 1.
 */
#ifndef CDDP_OP_CUDA_DEVICE_EACH_CUH
#define CDDP_OP_CUDA_DEVICE_EACH_CUH

#include "op/cuda/device/pack.cuh"

#define EACH_THREADS 256
/* The second launch bound (blocks on an SM) of kernels for which ptxas would
 * otherwise keep variables in memory, so that more blocks fit. With it a thread
 * may use 64 registers. */
#define EACH_FEW 4
/* More blocks than any GPU runs at once; the rest of the work is a loop. */
#define EACH_BLOCKS 16384

/* Number of blocks for [items], if a block takes [each]. */
static inline unsigned each_blocks(int64_t items, int64_t each)
{
    const int64_t blocks = (items + each - 1) / each;

    return (unsigned)(blocks < 1             ? 1
                      : blocks > EACH_BLOCKS ? EACH_BLOCKS
                                             : blocks);
}

/* Index of this thread among all threads of the launch, and their number. */
static __device__ __forceinline__ int64_t each_first(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t each_step(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

template <int N, typename Work>
static __global__ void __launch_bounds__(EACH_THREADS)
    each_run(Work work, int64_t count)
{
    for (int64_t i = each_first() * N; i < count; i += each_step() * N) {
        if (i + N <= count)
            work.template at<N>(i);
        else
            for (int64_t k = i; k < count; k++)
                work.template at<1>(k);
    }
}

/* Run [work] on [count] elements: in packs of N if [wide], which pack_aligned
 * tells, otherwise one by one. */
template <int N, typename Work>
static void each_start(const Work &work, int64_t count, bool wide,
                       cudaStream_t stream)
{
    if (wide)
        LAUNCH((each_run<N, Work>), each_blocks(count, N * EACH_THREADS),
               EACH_THREADS, 0, stream, work, count);
    else
        LAUNCH((each_run<1, Work>), each_blocks(count, EACH_THREADS),
               EACH_THREADS, 0, stream, work, count);
}

#endif
