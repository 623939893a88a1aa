/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op_fold: the running statistics of a batch norm at the end of a step. */
#include "op/cuda/device/each.cuh"
#include "op/op_step.h"

static __global__ void __launch_bounds__(EACH_THREADS) fold_run(op_fold_t fold)
{
    if (!op_fold_wanted(&fold))
        return;
    for (int64_t c = each_first(); c < (int64_t)fold.channels; c += each_step())
        op_fold_channel(&fold, (size_t)c);
}

extern "C" err_code_t cuda_fold(const op_fold_t *fold, dev_stream_t *stream,
                                err_t *err)
{
    LAUNCH(fold_run, each_blocks((int64_t)fold->channels, EACH_THREADS),
           EACH_THREADS, 0, dev_cuda_stream(stream), *fold);
    return cuda_kernel_started(cudaGetLastError(), "updates running statistics",
                               err);
}
