/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op_hash. The blocks add their sums by atomics: the sum of whole numbers does
 * not depend on their order. */
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/reduce.cuh"
#include "op/op_hash.h"

typedef unsigned long long sum_t; /* what atomicAdd takes */

static __global__ void __launch_bounds__(EACH_THREADS)
    hash_run(sum_t *to, const uint32_t *from, int64_t words)
{
    __shared__ sum_t part[32];
    sum_t sum = 0;

    for (int64_t i = each_first(); i < words; i += each_step())
        sum += op_hash_word((uint64_t)i, from[i]);
    sum = block_sum(sum, part);
    if (threadIdx.x == 0)
        atomicAdd(to, sum);
}

extern "C" err_code_t cuda_hash(uint64_t *to, const void *from, size_t words,
                                dev_stream_t *stream, err_t *err)
{
    const cudaStream_t on = dev_cuda_stream(stream);
    cudaError_t code = cudaMemsetAsync(to, 0, sizeof *to, on);

    if (code == cudaSuccess) {
        LAUNCH(hash_run, each_blocks((int64_t)words, EACH_THREADS),
               EACH_THREADS, 0, on, (sum_t *)to, (const uint32_t *)from,
               (int64_t)words);
        code = cudaGetLastError();
    }
    return cuda_kernel_started(code, "computes a hash", err);
}
