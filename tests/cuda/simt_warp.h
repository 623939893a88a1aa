/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the threads of a block do together: barriers, votes, shuffles.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_WARP_H
#define CDDP_TESTS_CUDA_SIMT_WARP_H

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#define SIMT_HIDDEN __attribute__((visibility("hidden")))

/* ---- who runs ------------------------------------------------------------ */

/* The thread that runs; its other fields are known to simt.cc. */
struct simt_thread {
    uint3 index;
    unsigned lane;
    simt_thread *warp; /* lane 0 of its warp */
    /* What it gave to the last two collectives of its warp, by turn & 1. Two,
     * because a thread may reach the next collective before another one has
     * read from this one. */
    uint64_t given[2];
    unsigned turn;
};

struct simt_block_now {
    uint3 index;
    dim3 size, grid;
    void *shared; /* dynamic */
};

extern SIMT_HIDDEN simt_thread *simt_self;
extern SIMT_HIDDEN simt_block_now simt_block;

/* Where in the source a thread waits. The line, not the return address: a
 * compiler may copy a call. */
struct simt_place {
    const char *what, *file;
    int line;
};

#define SIMT_PLACE \
    const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* Return when all threads of the block, or of the warp, wait at this place. */
SIMT_HIDDEN void simt_wait_block(simt_place at);
SIMT_HIDDEN void simt_wait_warp(simt_place at);
/* Give [value], wait for the warp, and return the value of [lane], or the
 * mask of the lanes that gave something other than 0. */
SIMT_HIDDEN uint64_t simt_take(uint64_t value, unsigned lane, simt_place at);
SIMT_HIDDEN unsigned simt_ballot(bool value, simt_place at);
/* The number of threads of the block that gave true. */
SIMT_HIDDEN unsigned simt_count(bool value, simt_place at);
/* End the process unless [mask] is the full one. */
SIMT_HIDDEN void simt_full(unsigned mask, simt_place at);

/* ---- barriers, votes, shuffles ------------------------------------------- */

inline void __syncthreads(SIMT_PLACE)
{
    simt_wait_block({"__syncthreads", file, line});
}

inline int __syncthreads_count(int value, SIMT_PLACE)
{
    return (int)simt_count(value != 0, {"__syncthreads_count", file, line});
}

inline int __syncthreads_or(int value, SIMT_PLACE)
{
    return simt_count(value != 0, {"__syncthreads_or", file, line}) != 0;
}

inline int __syncthreads_and(int value, SIMT_PLACE)
{
    return simt_count(value == 0, {"__syncthreads_and", file, line}) == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_PLACE)
{
    const simt_place at = {"__syncwarp", file, line};

    simt_full(mask, at);
    simt_wait_warp(at);
}

inline unsigned __ballot_sync(unsigned mask, int value, SIMT_PLACE)
{
    const simt_place at = {"__ballot_sync", file, line};

    simt_full(mask, at);
    return simt_ballot(value != 0, at);
}

inline int __any_sync(unsigned mask, int value, SIMT_PLACE)
{
    const simt_place at = {"__any_sync", file, line};

    simt_full(mask, at);
    return simt_ballot(value != 0, at) != 0;
}

inline int __all_sync(unsigned mask, int value, SIMT_PLACE)
{
    const simt_place at = {"__all_sync", file, line};

    simt_full(mask, at);
    return simt_ballot(value == 0, at) == 0;
}

template <class T>
inline T simt_shuffle(unsigned mask, T value, unsigned lane, simt_place at)
{
    uint64_t bits = 0;

    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8,
                  "shuffles move numbers");
    memcpy(&bits, &value, sizeof value);
    simt_full(mask, at);
    bits = simt_take(bits, lane, at);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A source outside of the group of [width] lanes gives the thread's own
 * value. */
template <class T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32,
                     SIMT_PLACE)
{
    const unsigned w = (unsigned)width, first = simt_self->lane & ~(w - 1);

    return simt_shuffle(mask, value, first + ((unsigned)from & (w - 1)),
                        {"__shfl_sync", file, line});
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                        SIMT_PLACE)
{
    const unsigned lane = simt_self->lane, at = lane & ((unsigned)width - 1);

    return simt_shuffle(mask, value, at >= by ? lane - by : lane,
                        {"__shfl_up_sync", file, line});
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                          SIMT_PLACE)
{
    const unsigned w = (unsigned)width, lane = simt_self->lane;

    return simt_shuffle(mask, value,
                        (lane & (w - 1)) + by < w ? lane + by : lane,
                        {"__shfl_down_sync", file, line});
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                         SIMT_PLACE)
{
    const unsigned w = (unsigned)width, lane = simt_self->lane;
    const unsigned from = lane ^ (unsigned)bits;

    return simt_shuffle(mask, value, from / w <= lane / w ? from : lane,
                        {"__shfl_xor_sync", file, line});
}

#endif
