/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op_add: to[i] += from[i]. */
#include "op/cuda/device/each.cuh"

namespace
{

template <typename T> struct sum_work {
    T *to;
    const T *from;

    template <int N> __device__ void at(int64_t i) const
    {
        float a[N], b[N];

        pack_load(to + i, a);
        pack_load(from + i, b);
        for (int k = 0; k < N; k++)
            a[k] += b[k];
        pack_store(to + i, a);
    }
};

struct sum_double {
    double *to;
    const double *from;

    template <int N> __device__ void at(int64_t i) const
    {
        for (int k = 0; k < N; k++)
            to[i + k] += from[i + k];
    }
};

} // namespace

extern "C" err_code_t cuda_sum(void *to, const void *from, size_t count,
                               op_type_t type, dev_stream_t *stream, err_t *err)
{
    const cudaStream_t on = dev_cuda_stream(stream);
    const bool wide = pack_aligned(to, from);

    if (type == OP_FLOAT64)
        each_start<1>(sum_double{(double *)to, (const double *)from},
                      (int64_t)count, false, on);
    else if (type == OP_BFLOAT16)
        each_start<8>(sum_work<bf16_t>{(bf16_t *)to, (const bf16_t *)from},
                      (int64_t)count, wide, on);
    else
        each_start<4>(sum_work<float>{(float *)to, (const float *)from},
                      (int64_t)count, wide, on);
    return cuda_kernel_started(cudaGetLastError(), "adds tensors", err);
}
