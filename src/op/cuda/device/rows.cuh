/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Kernels that treat the rows of a tensor one by one: a thread, a warp or a
 * block has a row. A thread is best where neighbouring rows are adjacent in
 * memory, otherwise a warp for short rows, and a block for long ones.
 *
 * A warp or a block may treat a row in packs of N elements. Sums stay sums of
 * single elements: they have the same bits whether or not packs are possible.
 */
#ifndef CDDP_OP_CUDA_DEVICE_ROWS_CUH
#define CDDP_OP_CUDA_DEVICE_ROWS_CUH

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/reduce.cuh"

#define ROWS_WARPS (EACH_THREADS / 32)
/* Up to this length a warp treats a row, up to the other one a thread. */
#define ROWS_WARP_LENGTH 1024
#define ROWS_THREAD_LENGTH 7

typedef enum rows_who_t { ROWS_THREAD, ROWS_WARP, ROWS_BLOCK } rows_who_t;

/* Who treats rows of [length] elements, of which neighbours are [inner]
 * elements apart. */
static inline rows_who_t rows_for(int64_t length, int64_t inner)
{
    if (inner > 1 || length <= ROWS_THREAD_LENGTH)
        return ROWS_THREAD;
    return length <= ROWS_WARP_LENGTH ? ROWS_WARP : ROWS_BLOCK;
}

/* Rows that a block treats at once. */
static inline int64_t rows_each(rows_who_t who)
{
    return who == ROWS_THREAD ? EACH_THREADS
           : who == ROWS_WARP ? ROWS_WARPS
                              : 1;
}

static inline unsigned rows_blocks(rows_who_t who, int64_t rows)
{
    return each_blocks(rows, rows_each(who));
}

/* This thread's rows are row, row + step and so on. In a row it treats the
 * elements lane, lane + lanes and so on, or packs with these numbers. */
template <rows_who_t who> struct rows_place {
    int64_t row, step;
    int lane, lanes;

    __device__ rows_place()
    {
        if constexpr (who == ROWS_THREAD) {
            row = each_first();
            step = each_step();
            lane = 0;
            lanes = 1;
        } else if constexpr (who == ROWS_WARP) {
            row = (int64_t)blockIdx.x * ROWS_WARPS + threadIdx.x / 32;
            step = (int64_t)gridDim.x * ROWS_WARPS;
            lane = threadIdx.x % 32;
            lanes = 32;
        } else {
            row = blockIdx.x;
            step = gridDim.x;
            lane = threadIdx.x;
            lanes = EACH_THREADS;
        }
    }
};

/* The sum, or the largest, of the values of all threads of a row. */
template <rows_who_t who, typename T>
static __device__ __forceinline__ T rows_sum(T value)
{
    if constexpr (who == ROWS_BLOCK) {
        __shared__ T part[32];

        return block_sum(value, part);
    }
    if constexpr (who == ROWS_WARP)
        return warp_sum(value);
    return value;
}

template <rows_who_t who, typename T>
static __device__ __forceinline__ T rows_max(T value)
{
    if constexpr (who == ROWS_BLOCK) {
        __shared__ T part[32];

        return block_max(value, part);
    }
    if constexpr (who == ROWS_WARP)
        return warp_max(value);
    return value;
}

/* Can rows of [length] elements, of which neighbours are [inner] elements
 * apart, be treated in packs of 4? Their addresses must allow it, too, which
 * this does not check (pack_aligned). */
static inline bool rows_packed(int64_t length, int64_t inner)
{
    return rows_for(length, inner) != ROWS_THREAD && length % 4 == 0;
}

/* Start kernel<who>, for whichever [who] it is. */
#define ROWS_LAUNCH(who, kernel, blocks, stream, ...)                      \
    do {                                                                   \
        if ((who) == ROWS_THREAD)                                          \
            LAUNCH((kernel<ROWS_THREAD>), blocks, EACH_THREADS, 0, stream, \
                   __VA_ARGS__);                                           \
        else if ((who) == ROWS_WARP)                                       \
            LAUNCH((kernel<ROWS_WARP>), blocks, EACH_THREADS, 0, stream,   \
                   __VA_ARGS__);                                           \
        else                                                               \
            LAUNCH((kernel<ROWS_BLOCK>), blocks, EACH_THREADS, 0, stream,  \
                   __VA_ARGS__);                                           \
    } while (0)

/* Start kernel<who, N>, with N of 4 if [packed], which rows_packed allows. */
#define ROWS_LAUNCH_PACKED(who, packed, kernel, blocks, stream, ...)          \
    do {                                                                      \
        if ((who) == ROWS_THREAD)                                             \
            LAUNCH((kernel<ROWS_THREAD, 1>), blocks, EACH_THREADS, 0, stream, \
                   __VA_ARGS__);                                              \
        else if ((who) == ROWS_WARP && (packed))                              \
            LAUNCH((kernel<ROWS_WARP, 4>), blocks, EACH_THREADS, 0, stream,   \
                   __VA_ARGS__);                                              \
        else if ((who) == ROWS_WARP)                                          \
            LAUNCH((kernel<ROWS_WARP, 1>), blocks, EACH_THREADS, 0, stream,   \
                   __VA_ARGS__);                                              \
        else if (packed)                                                      \
            LAUNCH((kernel<ROWS_BLOCK, 4>), blocks, EACH_THREADS, 0, stream,  \
                   __VA_ARGS__);                                              \
        else                                                                  \
            LAUNCH((kernel<ROWS_BLOCK, 1>), blocks, EACH_THREADS, 0, stream,  \
                   __VA_ARGS__);                                              \
    } while (0)

#endif
