/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sorting the positions of a list of int32 by their numbers, stably: positions
 * with equal numbers stay in rising order. A radix sort of 8 bits a pass. A
 * block treats a tile of the list: counts how often each digit occurs; the
 * counts before it, in this tile and all other ones, give the new position.
 */
#ifndef CDDP_OP_CUDA_DEVICE_SORT_CUH
#define CDDP_OP_CUDA_DEVICE_SORT_CUH

#include "op/cuda/device/each.cuh"

#define SORT_BITS 8
#define SORT_DIGITS (1 << SORT_BITS)
/* Elements of a tile, one for each thread. */
#define SORT_TILE EACH_THREADS

typedef struct sort_list {
    const int32_t *keys;   /* the numbers, rising */
    const int32_t *places; /* their positions in the list as it was */
} sort_list;

typedef struct sort_pass {
    int64_t count, rows, tiles;
    int shift;
    sort_list from; /* from.places NULL: the list as it was */
    int32_t *keys, *places;
    int32_t *counts; /* [digits,tiles], then [digits] for their sums */
} sort_pass;

static __device__ __forceinline__ int32_t sort_clamp(int32_t key, int64_t rows)
{
    return key < 0 ? 0 : key >= rows ? (int32_t)(rows - 1) : key;
}

static __device__ __forceinline__ int sort_digit(const sort_pass &pass,
                                                 int64_t i)
{
    return sort_clamp(pass.from.keys[i], pass.rows) >> pass.shift &
           (SORT_DIGITS - 1);
}

static __global__ void __launch_bounds__(SORT_TILE) sort_count(sort_pass pass)
{
    __shared__ int32_t counts[SORT_DIGITS];
    const int64_t i = (int64_t)blockIdx.x * SORT_TILE + threadIdx.x;

    for (int d = threadIdx.x; d < SORT_DIGITS; d += SORT_TILE)
        counts[d] = 0;
    __syncthreads();
    if (i < pass.count)
        atomicAdd(&counts[sort_digit(pass, i)], 1);
    __syncthreads();
    for (int d = threadIdx.x; d < SORT_DIGITS; d += SORT_TILE)
        pass.counts[d * pass.tiles + blockIdx.x] = counts[d];
}

/* Block d replaces the counts of digit d by the sums of those of earlier tiles,
 * and writes the sum of all. */
static __global__ void __launch_bounds__(SORT_TILE) sort_scan(sort_pass pass)
{
    __shared__ int32_t sums[SORT_TILE];
    int32_t *counts = pass.counts + blockIdx.x * pass.tiles;
    const int64_t each = (pass.tiles + SORT_TILE - 1) / SORT_TILE;
    const int64_t first = threadIdx.x * each;
    const int64_t end = first + each < pass.tiles ? first + each : pass.tiles;
    int32_t sum = 0, before = 0;

    for (int64_t t = first; t < end; t++)
        sum += counts[t];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned k = 0; k < threadIdx.x; k++)
        before += sums[k];
    for (int64_t t = first; t < end; t++) {
        const int32_t count = counts[t];

        counts[t] = before;
        before += count;
    }
    if (threadIdx.x == SORT_TILE - 1)
        pass.counts[SORT_DIGITS * pass.tiles + blockIdx.x] = before;
}

static __global__ void __launch_bounds__(SORT_TILE) sort_move(sort_pass pass)
{
    __shared__ int32_t digits[SORT_TILE], totals[SORT_DIGITS];
    const int64_t i = (int64_t)blockIdx.x * SORT_TILE + threadIdx.x;
    const int digit = i < pass.count ? sort_digit(pass, i) : SORT_DIGITS;
    int64_t to;

    for (int d = threadIdx.x; d < SORT_DIGITS; d += SORT_TILE)
        totals[d] = pass.counts[SORT_DIGITS * pass.tiles + d];
    digits[threadIdx.x] = digit;
    __syncthreads();
    if (i >= pass.count)
        return;
    to = pass.counts[digit * pass.tiles + blockIdx.x];
    for (int d = 0; d < digit; d++)
        to += totals[d];
    for (unsigned k = 0; k < threadIdx.x; k++)
        to += digits[k] == digit;
    pass.keys[to] = sort_clamp(pass.from.keys[i], pass.rows);
    pass.places[to] =
        pass.from.places == NULL ? (int32_t)i : pass.from.places[i];
}

static inline int64_t sort_tiles(int64_t count)
{
    return (count + SORT_TILE - 1) / SORT_TILE;
}

/* Bytes of scratch for [count] elements, of which there are less than 2^31. */
static inline size_t sort_bytes(int64_t count)
{
    const size_t list = mem_round((size_t)count * sizeof(int32_t));

    return 4 * list +
           mem_round((size_t)SORT_DIGITS * (size_t)(sort_tiles(count) + 1) *
                     sizeof(int32_t));
}

/* Sort [count] numbers, 0 to rows - 1; other ones are clamped. The result is in
 * [scratch]. */
static inline sort_list sort_start(const int32_t *numbers, int64_t count,
                                   int64_t rows, void *scratch,
                                   cudaStream_t stream)
{
    const size_t list = mem_round((size_t)count * sizeof(int32_t));
    char *at = (char *)scratch;
    sort_pass pass = {};
    int turn = 0;

    pass.count = count;
    pass.rows = rows;
    pass.tiles = sort_tiles(count);
    pass.from.keys = numbers;
    pass.counts = (int32_t *)(at + 4 * list);
    do {
        const unsigned tiles = (unsigned)pass.tiles;

        pass.keys = (int32_t *)(at + 2 * (turn % 2) * list);
        pass.places = (int32_t *)(at + (2 * (turn % 2) + 1) * list);
        LAUNCH(sort_count, tiles, SORT_TILE, 0, stream, pass);
        LAUNCH(sort_scan, SORT_DIGITS, SORT_TILE, 0, stream, pass);
        LAUNCH(sort_move, tiles, SORT_TILE, 0, stream, pass);
        pass.from = sort_list{pass.keys, pass.places};
        pass.shift += SORT_BITS;
        turn++;
    } while ((rows - 1) >> pass.shift > 0);
    return pass.from;
}

#endif
