/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a .cu file sees instead of nvcc's language when a C++ compiler compiles
 * it for the emulator (simt_run.h). It compiles against the toolkit's headers.
 *
 * A kernel may use:
 * - threadIdx, blockIdx, blockDim, gridDim (x, y, z), warpSize;
 * - __syncthreads, also with _or, _and, _count; __syncwarp; __threadfence;
 * - shuffles (sync, up, down, xor) of numbers of 2, 4 or 8 bytes, and votes
 *   (any, all, ballot), by all 32 threads of a warp, none of which has
 * returned; [width] may be a smaller power of two;
 * - static __shared__ arrays, DYNAMIC_SHARED (launch.h), __constant__ tables;
 * - atomics on int, unsigned, unsigned long long. There are none on floating
 *   point numbers: their order would decide on the bits;
 * - the functions in simt_math.h and simt_memory.h, float4 and the other vector
 * types, __ldg and its relatives, and what cuda_bf16.h offers to host code
 * (conversions; its arithmetic is done in float32).
 *
 * It may not use inline PTX, mma, cp.async, cooperative groups, textures,
 * clock64, or a second kernel inside of a kernel. __CUDACC__ and __CUDA_ARCH__
 * are not defined here, so code for them stands behind `#ifdef __CUDA_ARCH__`.
 *
 * Static shared memory is thread-local memory of the host's thread: a module
 * that is emulated must have no other thread-local variables that begin as
 * zero, because they would be overwritten with NaN at each block.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_H
#define CDDP_TESTS_CUDA_SIMT_H

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <tuple>
#include <type_traits>

#include "simt_run.h"
#include "simt_warp.h"

/* ---- words of the language ----------------------------------------------- */

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (simt_self->index)
#define blockIdx (simt_block.index)
#define blockDim (simt_block.size)
#define gridDim (simt_block.grid)
#define warpSize 32

/* ---- starting a kernel --------------------------------------------------- */

template <class... P> struct simt_call {
    void (*kernel)(P...);
    std::tuple<P...> args;

    static void run(const void *self)
    {
        const simt_call *call = static_cast<const simt_call *>(self);

        std::apply(call->kernel, call->args);
    }
};

template <class... P, class... A>
inline void simt_start(const char *name, void (*kernel)(P...), dim3 grid,
                       dim3 block, size_t shared, cudaStream_t stream,
                       A &&...args)
{
    static_assert((std::is_trivially_copyable<P>::value && ...),
                  "the arguments of a kernel are copied as bytes");
    const simt_launch_t launch = {
        name,   reinterpret_cast<const void *>(kernel), grid, block, shared,
        stream,
    };
    const simt_call<P...> call = {kernel, {static_cast<P>(args)...}};

    simt_launch(&launch, simt_call<P...>::run, &call, sizeof call);
}

#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    simt_start(#kernel, kernel, grid, block, shared, stream, __VA_ARGS__)

#define DYNAMIC_SHARED(type, name) \
    type *name = static_cast<type *>(simt_block.shared)

#include "simt_math.h"
#include "simt_memory.h"

#endif
