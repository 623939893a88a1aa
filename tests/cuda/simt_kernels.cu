/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simt_kernels.h"

#include <cuda_bf16.h>

#include "op/cuda/device/index.cuh"
#include "op/cuda/launch.h"

namespace
{

constexpr unsigned ALL = 0xffffffffu;

template <simt_fault_t FAULT>
__device__ float sum_of_block(float value, float *part)
{
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;

#pragma unroll
    for (int bit = 16; bit > 0; bit >>= 1)
        value += __shfl_xor_sync(ALL, value, bit);
    if (lane == 0)
        part[threadIdx.x / 32] = value;
    if (FAULT != SIMT_NO_BARRIER)
        __syncthreads();
    value = lane < warps ? part[lane] : 0;
    for (int bit = 16; bit > 0; bit >>= 1)
        value += __shfl_xor_sync(ALL, value, bit);
    return value;
}

template <simt_fault_t FAULT> __device__ void misbehave()
{
    const unsigned thread = threadIdx.x;

    if (FAULT == SIMT_TWO_BARRIERS) {
        if (thread < blockDim.x / 2)
            __syncthreads();
        else
            __syncthreads();
    }
    if (FAULT == SIMT_HALF_SHUFFLE && thread % 32 < 16)
        __shfl_xor_sync(ALL, thread, 1);
    if (FAULT == SIMT_PART_MASK)
        __shfl_xor_sync(0xffffu, thread, 1);
}

template <simt_fault_t FAULT>
__global__ void __launch_bounds__(128)
    norm(const float *__restrict__ x, float *__restrict__ y, int columns)
{
    __shared__ float part[32];
    const float *row = x + (size_t)blockIdx.x * columns;
    const int last = columns + (FAULT == SIMT_BEHIND);
    float sum = 0;

    if (FAULT == SIMT_EARLY_RETURN && threadIdx.x == 5)
        return;
    misbehave<FAULT>();
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += __ldg(&row[i]);
    sum = sum_of_block<FAULT>(sum, part);
    for (int i = threadIdx.x; i < last; i += blockDim.x)
        y[(size_t)blockIdx.x * columns + i] = row[i % columns] / sum;
}

__global__ void transpose(const float *x, float *y, int rows, int columns)
{
    DYNAMIC_SHARED(float, tile); /* [32][33] */
    const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32;
    const int to = r + threadIdx.x, from = blockIdx.x * 32;

    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (r + j < rows && c < columns)
            tile[j * 33 + threadIdx.x] = x[(size_t)(r + j) * columns + c];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (to < rows && from + j < columns)
            y[(size_t)(from + j) * rows + to] = tile[threadIdx.x * 33 + j];
}

__global__ void warp(const float *x, float *y)
{
    const unsigned lane = threadIdx.x;
    float sum = x[lane];
    unsigned mask;

    for (unsigned by = 1; by < 32; by *= 2) {
        const float left = __shfl_up_sync(ALL, sum, by);

        sum += lane >= by ? left : 0;
    }
    y[lane] = sum;
    sum = x[lane];
    for (int by = 8; by > 0; by /= 2)
        sum += __shfl_down_sync(ALL, sum, by, 16);
    y[32 + lane] = __shfl_sync(ALL, sum, 0, 16);
    mask = __ballot_sync(ALL, x[lane] > 0);
    y[64 + lane] = (float)(mask >> lane & 1);
    y[96 + lane] = (float)__syncthreads_count(x[lane] > 0);
    if (__any_sync(ALL, x[lane] > 0) != (mask != 0) ||
        __all_sync(ALL, x[lane] > 0) != (mask == ALL))
        y[lane] = -1;
}

__global__ void unwritten(float *y)
{
    __shared__ float fixed[8];
    DYNAMIC_SHARED(float, dynamic);

    if (threadIdx.x == 0) {
        y[0] = fixed[3];
        y[1] = dynamic[5];
    }
    __syncthreads();
    fixed[threadIdx.x] = dynamic[threadIdx.x] = 1;
}

__device__ __forceinline__ unsigned bin_of(__nv_bfloat16 x)
{
    return min((unsigned)max(__bfloat162float(x), 0.0f), 15u);
}

__global__ void count(const __nv_bfloat16 *x, unsigned *bins, int count)
{
    __shared__ unsigned mine[16];

    if (threadIdx.x < 16)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x)
        atomicAdd(&mine[bin_of(x[i])], 1u);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void add(const float *a, const float *b, float *y, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        y[i] = a[i] + b[i];
}

__global__ void divide(const int64_t *a, index_divisor_t by, int64_t *whole,
                       int64_t *rest, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        whole[i] = a[i];
        rest[i] = index_split(&whole[i], by);
    }
}

__global__ void shared(float *y)
{
    DYNAMIC_SHARED(float, block);

    block[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0)
        y[0] = block[1];
}

} // namespace

#define NORM(fault)                                               \
    case fault:                                                   \
        LAUNCH(norm<fault>, rows, 128, 0, stream, x, y, columns); \
        break

void simt_kernel_norm(const float *x, float *y, int rows, int columns,
                      simt_fault_t fault, cudaStream_t stream)
{
    switch (fault) {
        NORM(SIMT_RIGHT);
        NORM(SIMT_NO_BARRIER);
        NORM(SIMT_TWO_BARRIERS);
        NORM(SIMT_HALF_SHUFFLE);
        NORM(SIMT_PART_MASK);
        NORM(SIMT_EARLY_RETURN);
        NORM(SIMT_BEHIND);
    }
}

void simt_kernel_transpose(const float *x, float *y, int rows, int columns,
                           cudaStream_t stream)
{
    LAUNCH(transpose, dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8),
           32 * 33 * sizeof(float), stream, x, y, rows, columns);
}

void simt_kernel_warp(const float *x, float *y, cudaStream_t stream)
{
    LAUNCH(warp, 1, 32, 0, stream, x, y);
}

void simt_kernel_unwritten(float *y, cudaStream_t stream)
{
    LAUNCH(unwritten, 2, 8, 8 * sizeof(float), stream, y);
}

void simt_kernel_count(const void *x, unsigned *bins, int count,
                       cudaStream_t stream)
{
    LAUNCH(::count, 3, 64, 0, stream, static_cast<const __nv_bfloat16 *>(x),
           bins, count);
}

void simt_kernel_divide(const int64_t *a, int64_t by, int64_t *whole,
                        int64_t *rest, int count, cudaStream_t stream)
{
    LAUNCH(divide, (count + 63) / 64, 64, 0, stream, a, index_divisor_of(by),
           whole, rest, count);
}

void simt_kernel_add(const float *a, const float *b, float *y, int count,
                     cudaStream_t stream)
{
    LAUNCH(add, (count + 63) / 64, 64, 0, stream, a, b, y, count);
}

void simt_kernel_shared(float *y, size_t bytes, bool ask, cudaStream_t stream)
{
    if (ask)
        LAUNCH_SHARED(shared, bytes);
    LAUNCH(shared, 1, 32, bytes, stream, y);
}
