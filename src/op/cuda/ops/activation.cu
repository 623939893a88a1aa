/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Activations: y = f(x), dx = dy f', with f' computed from y where that is
 * possible. With channels last, f(0) is 0, so the zeros that pad the channels
 * stay zeros; kinds of which this is not so (OP_BF16_TAKEN) come here with
 * plain tensors. */
#include "op/cuda/channels.h"
#include "op/cuda/device/activation.cuh"
#include "op/cuda/device/each.cuh"

namespace
{

template <typename T> struct activation_work {
    op_kind_t kind;
    float a;
    const T *x;
    T *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            v[k] = activation_value(kind, v[k], a);
        pack_store(y + i, v);
    }
};

template <typename T> struct activation_gradient {
    op_kind_t kind;
    float a;
    const T *of, *dy;
    T *dx;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N], d[N];

        pack_load(of + i, v);
        pack_load(dy + i, d);
        for (int k = 0; k < N; k++)
            d[k] *= activation_slope(kind, v[k], a);
        pack_store(dx + i, d);
    }
};

} // namespace

static err_code_t activation_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_y = op->in_place = activation_reads_y(op->config.kind);
    op->reads_x = !op->reads_y;
    return ERR_OK;
}

template <typename T>
static void value_start(const op_t *op, const op_args_t *args)
{
    const activation_work<T> work = {op->config.kind, (float)op->config.alpha,
                                     (const T *)args->x, (T *)args->y};

    each_start<16 / sizeof(T)>(work, cuda_channels_elems(&op->config.in),
                               pack_aligned(work.x, work.y), cuda_stream(args));
}

template <typename T>
static void gradient_start(const op_t *op, const op_args_t *args)
{
    const activation_gradient<T> work = {
        op->config.kind, (float)op->config.alpha,
        (const T *)(op->reads_y ? args->y : args->x), (const T *)args->dy,
        (T *)args->dx};

    each_start<16 / sizeof(T)>(work, cuda_channels_elems(&op->config.in),
                               pack_aligned(work.of, work.dy, work.dx),
                               cuda_stream(args));
}

static err_code_t activation_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    if (op->out.layout != NULL)
        value_start<bf16_t>(op, args);
    else
        value_start<float>(op, args);
    return cuda_started(op, err);
}

static err_code_t activation_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    if (op->out.layout != NULL)
        gradient_start<bf16_t>(op, args);
    else
        gradient_start<float>(op, args);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_activation_kernel = {
    activation_open, NULL, activation_forward, activation_backward};
