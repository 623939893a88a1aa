/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Copies on the device. Nothing is copied if source and target are the same. */
#ifndef CDDP_OP_CUDA_DEVICE_COPY_CUH
#define CDDP_OP_CUDA_DEVICE_COPY_CUH

#include "op/cuda/device/each.cuh"

struct copy_work {
    const float *from;
    float *to;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(from + i, v);
        pack_store(to + i, v);
    }
};

static inline void copy_start(const void *from, void *to, int64_t count,
                              cudaStream_t stream)
{
    if (from != to)
        each_start<4>(copy_work{(const float *)from, (float *)to}, count,
                      pack_aligned(from, to), stream);
}

#endif
