/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How a .cu file starts a kernel and declares dynamic shared memory. The same
 * file is compiled by nvcc for a GPU, and by a C++ compiler for tests, which
 * run each CUDA thread as a fiber of the host (tests/cuda/simt.h; that header
 * lists what a kernel may use).
 *
 *     LAUNCH(scale, grid, block, 0, stream, x, count);
 *     LAUNCH((scale<float, 4>), grid, block, shared, stream, x, count);
 *
 * The caller checks for errors afterwards (cudaGetLastError). A kernel that
 * needs more than 48 KiB of dynamic shared memory is named once before the
 * launch by LAUNCH_SHARED(kernel, bytes), which is a cudaError_t.
 *
 * In a kernel, DYNAMIC_SHARED(float, tile) declares `float *tile`, the
 * [shared] bytes of the launch, at a multiple of 16. There is one such block:
 * a kernel that needs two tables cuts it by itself.
 */
#ifndef CDDP_OP_CUDA_LAUNCH_H
#define CDDP_OP_CUDA_LAUNCH_H

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

#define DYNAMIC_SHARED(type, name)                                 \
    extern __shared__ __align__(16) unsigned char launch_shared[]; \
    type *name = reinterpret_cast<type *>(launch_shared)

#else

#include <simt.h>

#endif

#define LAUNCH_SHARED(kernel, bytes)                                  \
    cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),      \
                         cudaFuncAttributeMaxDynamicSharedMemorySize, \
                         static_cast<int>(bytes))

#endif
