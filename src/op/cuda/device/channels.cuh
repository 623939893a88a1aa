/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums for each channel c of tensors [N,C,S], over n and s, in float64: two
 * sums at once. A block adds a chunk of the elements of one channel or, if S is
 * 1, of 32 neighbouring channels; the chunks of a channel are then added in a
 * fixed order. Chunks depend on the shape alone.
 *
 * What is summed is a struct with the functions
 *   term(c, n, at, sums): add the term of element [at] of sample n to sums[2];
 *   finish(c, sums): called once for each channel, by one thread.
 */
#ifndef CDDP_OP_CUDA_DEVICE_CHANNELS_CUH
#define CDDP_OP_CUDA_DEVICE_CHANNELS_CUH

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/reduce.cuh"

/* S is 1: a block has this many channels, and this many samples at a time. */
#define CHANNELS_WIDE 32
#define CHANNELS_DEEP (EACH_THREADS / CHANNELS_WIDE)
/* About this many blocks keep a GPU busy. */
#define CHANNELS_BLOCKS 2048

struct channels {
    int64_t N, C, S;
    int64_t chunk; /* elements of a channel in a chunk */
    unsigned chunks;
    index_divisor_t by_C, by_S;
};

static inline channels channels_of(int64_t N, int64_t C, int64_t S)
{
    const int64_t count = N * S, wide = S == 1 ? CHANNELS_WIDE : 1;
    const int64_t least = S == 1 ? 8 * CHANNELS_DEEP : 8 * EACH_THREADS;
    const int64_t most = (count + least - 1) / least;
    int64_t chunks = CHANNELS_BLOCKS / ((C + wide - 1) / wide);
    channels shape = {N, C, S, 0, 0, index_divisor_of(C), index_divisor_of(S)};

    chunks = chunks < 1 ? 1 : chunks > most ? most : chunks;
    shape.chunk = (count + chunks - 1) / chunks;
    shape.chunks = (unsigned)((count + shape.chunk - 1) / shape.chunk);
    return shape;
}

/* Bytes of the partial sums. */
static inline size_t channels_bytes(const channels &shape)
{
    return (size_t)shape.chunks * (size_t)shape.C * 2 * sizeof(double);
}

/* Two sums over the block, in thread 0. */
static __device__ __forceinline__ void channels_put(const double sums[2],
                                                    double *to)
{
    __shared__ double part[32];
    const double first = block_sum(sums[0], part);
    const double second = block_sum(sums[1], part);

    if (threadIdx.x == 0) {
        to[0] = first;
        to[1] = second;
    }
}

template <typename Work>
static __global__ void __launch_bounds__(EACH_THREADS)
    channels_planes(Work work, channels shape, double *partials)
{
    const int64_t count = shape.N * shape.S;

    for (int64_t b = blockIdx.x; b < shape.C * shape.chunks; b += gridDim.x) {
        int64_t chunk = b;
        const int64_t c = index_split(&chunk, shape.by_C);
        const int64_t first = chunk * shape.chunk;
        const int64_t end =
            first + shape.chunk < count ? first + shape.chunk : count;
        double sums[2] = {0, 0};

        for (int64_t i = first + threadIdx.x; i < end; i += EACH_THREADS) {
            int64_t n = i;
            const int64_t s = index_split(&n, shape.by_S);

            work.term(c, n, (n * shape.C + c) * shape.S + s, sums);
        }
        channels_put(sums, partials + 2 * b);
    }
}

/* S is 1. A block is CHANNELS_WIDE channels times CHANNELS_DEEP samples. */
template <typename Work>
static __global__ void __launch_bounds__(EACH_THREADS)
    channels_columns(Work work, channels shape, double *partials)
{
    __shared__ double part[CHANNELS_DEEP][CHANNELS_WIDE][2];
    const int64_t c = (int64_t)blockIdx.x * CHANNELS_WIDE + threadIdx.x;
    const int64_t first = (int64_t)blockIdx.y * shape.chunk;
    const int64_t end =
        first + shape.chunk < shape.N ? first + shape.chunk : shape.N;
    double sums[2] = {0, 0};

    for (int64_t n = first + threadIdx.y; n < end && c < shape.C;
         n += CHANNELS_DEEP)
        work.term(c, n, n * shape.C + c, sums);
    part[threadIdx.y][threadIdx.x][0] = sums[0];
    part[threadIdx.y][threadIdx.x][1] = sums[1];
    __syncthreads();
    if (threadIdx.y != 0 || c >= shape.C)
        return;
    for (int k = 1; k < CHANNELS_DEEP; k++) {
        sums[0] += part[k][threadIdx.x][0];
        sums[1] += part[k][threadIdx.x][1];
    }
    partials[2 * (blockIdx.y * shape.C + c)] = sums[0];
    partials[2 * (blockIdx.y * shape.C + c) + 1] = sums[1];
}

/* A warp adds the chunks of a channel. */
template <typename Work>
static __global__ void __launch_bounds__(EACH_THREADS)
    channels_finish(Work work, channels shape, const double *partials)
{
    const int64_t warps = (int64_t)gridDim.x * (EACH_THREADS / 32);

    for (int64_t c = each_first() / 32; c < shape.C; c += warps) {
        double sums[2] = {0, 0};

        for (unsigned k = threadIdx.x % 32; k < shape.chunks; k += 32) {
            sums[0] += partials[2 * (k * shape.C + c)];
            sums[1] += partials[2 * (k * shape.C + c) + 1];
        }
        sums[0] = warp_sum(sums[0]);
        sums[1] = warp_sum(sums[1]);
        if (threadIdx.x % 32 == 0)
            work.finish(c, sums);
    }
}

/* [partials] has channels_bytes bytes. */
template <typename Work>
static void channels_start(const Work &work, const channels &shape,
                           void *partials, cudaStream_t stream)
{
    double *to = (double *)partials;

    if (shape.S == 1)
        LAUNCH((channels_columns<Work>),
               dim3((unsigned)((shape.C + CHANNELS_WIDE - 1) / CHANNELS_WIDE),
                    shape.chunks),
               dim3(CHANNELS_WIDE, CHANNELS_DEEP), 0, stream, work, shape, to);
    else
        LAUNCH((channels_planes<Work>), each_blocks(shape.C * shape.chunks, 1),
               EACH_THREADS, 0, stream, work, shape, to);
    LAUNCH((channels_finish<Work>), each_blocks(shape.C, EACH_THREADS / 32),
           EACH_THREADS, 0, stream, work, shape, to);
}

#endif
