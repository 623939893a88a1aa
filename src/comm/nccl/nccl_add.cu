/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/nccl/nccl_add.h"
#include "op/cuda/launch.h"

#define THREADS 256
/* No GPU runs more blocks at once. If there are more elements than threads,
 * each thread adds several of them in a loop. */
#define BLOCKS_MOST 16384

/* Integers are added as unsigned numbers: C++ defines only for unsigned numbers
 * that sums wrap around. */
template <typename Number>
static __global__ void __launch_bounds__(THREADS)
    sum_add(Number *to, const Number *from, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += step)
        to[i] = to[i] + from[i];
}

template <typename Number>
static void add_start(void *to, const void *from, size_t count,
                      cudaStream_t stream)
{
    const size_t blocks = (count + THREADS - 1) / THREADS;
    const unsigned grid =
        (unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST);

    LAUNCH((sum_add<Number>), grid, THREADS, 0, stream,
           static_cast<Number *>(to), static_cast<const Number *>(from), count);
}

extern "C" err_code_t nccl_add(void *to, const void *from, size_t count,
                               comm_type_t type, cudaStream_t stream,
                               err_t *err)
{
    if (type == COMM_FLOAT32)
        add_start<float>(to, from, count, stream);
    else if (type == COMM_FLOAT64)
        add_start<double>(to, from, count, stream);
    else if (type == COMM_INT64)
        add_start<uint64_t>(to, from, count, stream);
    else
        add_start<uint32_t>(to, from, count, stream);
    return CUDA_CHECK_LAUNCH("a sum along a tree", err);
}
