/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* relu: y = max(x, 0), dx = dy where y > 0. NaN stays NaN. With channels last,
 * the zeros that pad the channels stay zeros. */
#include "op/cuda/channels.h"
#include "op/cuda/device/each.cuh"

namespace
{

template <typename T> struct relu_value {
    const T *x;
    T *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            v[k] = v[k] < 0 ? 0 : v[k];
        pack_store(y + i, v);
    }
};

template <typename T> struct relu_gradient {
    const T *y, *dy;
    T *dx;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N], d[N];

        pack_load(y + i, v);
        pack_load(dy + i, d);
        for (int k = 0; k < N; k++)
            d[k] = v[k] > 0 ? d[k] : 0;
        pack_store(dx + i, d);
    }
};

} // namespace

static err_code_t relu_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = true;
    return ERR_OK;
}

template <typename T>
static void value_start(const op_t *op, const op_args_t *args)
{
    const relu_value<T> work = {(const T *)args->x, (T *)args->y};

    each_start<16 / sizeof(T)>(work, cuda_channels_elems(&op->config.in),
                               pack_aligned(work.x, work.y), cuda_stream(args));
}

template <typename T>
static void gradient_start(const op_t *op, const op_args_t *args)
{
    const relu_gradient<T> work = {(const T *)args->y, (const T *)args->dy,
                                   (T *)args->dx};

    each_start<16 / sizeof(T)>(work, cuda_channels_elems(&op->config.in),
                               pack_aligned(work.y, work.dy, work.dx),
                               cuda_stream(args));
}

static err_code_t relu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->out.layout != NULL)
        value_start<bf16_t>(op, args);
    else
        value_start<float>(op, args);
    return cuda_started(op, err);
}

static err_code_t relu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    if (op->out.layout != NULL)
        gradient_start<bf16_t>(op, args);
    else
        gradient_start<float>(op, args);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_relu_kernel = {relu_open, NULL, relu_forward,
                                                 relu_backward};
