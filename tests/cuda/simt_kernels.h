/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Kernels that show what the emulator does, with and without faults. */
#ifndef CDDP_TESTS_CUDA_SIMT_KERNELS_H
#define CDDP_TESTS_CUDA_SIMT_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wrong with a kernel. */
typedef enum simt_fault {
    SIMT_RIGHT,
    SIMT_NO_BARRIER,   /* a barrier is missing */
    SIMT_TWO_BARRIERS, /* half of the block waits at another one */
    SIMT_HALF_SHUFFLE, /* half of a warp takes part */
    SIMT_PART_MASK,    /* a mask that is not the full one */
    SIMT_EARLY_RETURN, /* a thread returns ahead of a barrier */
    SIMT_BEHIND        /* writes behind the tensor */
} simt_fault_t;

/* y [rows, columns] = x, each row divided by its sum. */
void simt_kernel_norm(const float *x, float *y, int rows, int columns,
                      simt_fault_t fault, cudaStream_t stream);
/* y [columns, rows] = x [rows, columns], by dynamic shared memory. */
void simt_kernel_transpose(const float *x, float *y, int rows, int columns,
                           cudaStream_t stream);
/* y [4, 32]: of one warp, the inclusive sums of x [32], the sum of its half,
 * the mask of what is above 0, and how many of it the block counts. */
void simt_kernel_warp(const float *x, float *y, cudaStream_t stream);
/* y [2]: static and dynamic shared memory that nobody wrote. */
void simt_kernel_unwritten(float *y, cudaStream_t stream);
/* bins [16] += how often each value occurs in x; bfloat16 numbers x. */
void simt_kernel_count(const void *x, unsigned *bins, int count,
                       cudaStream_t stream);

/* whole [count] and rest [count]: a / by and a % by, as index.cuh has them. */
void simt_kernel_divide(const int64_t *a, int64_t by, int64_t *whole,
                        int64_t *rest, int count, cudaStream_t stream);
/* y [count] = a + b. */
void simt_kernel_add(const float *a, const float *b, float *y, int count,
                     cudaStream_t stream);
/* Write y[0], with [shared] bytes of dynamic shared memory, which are asked for
 * before if [ask]. */
void simt_kernel_shared(float *y, size_t shared, bool ask, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
