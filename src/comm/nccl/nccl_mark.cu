/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tells the host how far a stream has come. Unlike events, which cannot be
 * queried in a graph, marks work in graphs, too. */
#include "comm/nccl/nccl_mark.h"
#include "op/cuda/launch.h"

static __global__ void mark_add(volatile uint64_t *mark)
{
    *mark = *mark + 1;
}

extern "C" err_code_t nccl_mark(uint64_t *mark, cudaStream_t stream, err_t *err)
{
    LAUNCH(mark_add, 1, 1, 0, stream, mark);
    return CUDA_CHECK_LAUNCH("the mark of a collective", err);
}
