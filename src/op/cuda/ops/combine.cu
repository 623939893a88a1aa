/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add: y = x + other[0] + ..., from left to right, then relu if config.relu;
 * each gradient is dy, or with relu 0 where y is not above 0. mul: y = x *
 * other[0] * ...; the gradient of an input is dy times the other inputs. All
 * gradients are written in one pass. add also works on bfloat16 with channels
 * last.
 */
#include "op/cuda/channels.h"
#include "op/cuda/device/each.cuh"

namespace
{

template <typename T> struct combine_tensors {
    int inputs;
    bool relu;
    const T *in[OP_INPUTS_MAX];
    T *gradient[OP_INPUTS_MAX]; /* NULL: not wanted */
    const T *y, *dy;
    T *to; /* y of forward */
};

template <typename T> struct add_value {
    combine_tensors<T> t;

    template <int N> __device__ void at(int64_t i) const
    {
        float sum[N], term[N];

        pack_load(t.in[0] + i, sum);
        for (int input = 1; input < t.inputs; input++) {
            pack_load(t.in[input] + i, term);
            for (int k = 0; k < N; k++)
                sum[k] += term[k];
        }
        for (int k = 0; k < N; k++)
            sum[k] = t.relu && sum[k] < 0 ? 0 : sum[k];
        pack_store(t.to + i, sum);
    }
};

template <typename T> struct add_gradient {
    combine_tensors<T> t;

    template <int N> __device__ void at(int64_t i) const
    {
        float d[N], y[N];

        pack_load(t.dy + i, d);
        if (t.relu) {
            pack_load(t.y + i, y);
            for (int k = 0; k < N; k++)
                d[k] = y[k] > 0 ? d[k] : 0;
        }
        for (int input = 0; input < t.inputs; input++)
            if (t.gradient[input] != NULL)
                pack_store(t.gradient[input] + i, d);
    }
};

template <typename T> struct mul_value {
    combine_tensors<T> t;

    template <int N> __device__ void at(int64_t i) const
    {
        float product[N], factor[N];

        pack_load(t.in[0] + i, product);
        for (int input = 1; input < t.inputs; input++) {
            pack_load(t.in[input] + i, factor);
            for (int k = 0; k < N; k++)
                product[k] *= factor[k];
        }
        pack_store(t.to + i, product);
    }
};

template <typename T> struct mul_gradient {
    combine_tensors<T> t;

    template <int N> __device__ void one(int input, int64_t i) const
    {
        float d[N], factor[N];

        pack_load(t.dy + i, d);
        for (int other = 0; other < t.inputs; other++) {
            if (other == input)
                continue;
            pack_load(t.in[other] + i, factor);
            for (int k = 0; k < N; k++)
                d[k] *= factor[k];
        }
        pack_store(t.gradient[input] + i, d);
    }

    template <int N> __device__ void at(int64_t i) const
    {
        for (int input = 0; input < t.inputs; input++)
            if (t.gradient[input] != NULL)
                one<N>(input, i);
    }
};

} // namespace

template <typename T>
static combine_tensors<T> tensors_of(const op_t *op, const op_args_t *args)
{
    combine_tensors<T> t = {};

    t.inputs = 1 + op->config.others;
    t.relu = op->config.relu;
    t.in[0] = (const T *)args->x;
    t.gradient[0] = op->config.need_dx ? (T *)args->dx : NULL;
    for (int k = 1; k < t.inputs; k++) {
        t.in[k] = (const T *)args->other[k - 1];
        t.gradient[k] = (T *)args->dother[k - 1];
    }
    t.y = (const T *)args->y;
    t.to = (T *)args->y;
    t.dy = (const T *)args->dy;
    return t;
}

/* Can the tensors of the call be accessed 16 bytes at a time? */
template <typename T> static bool tensors_aligned(const combine_tensors<T> &t)
{
    bool aligned = pack_aligned(t.y, t.dy);

    for (int k = 0; k < t.inputs; k++)
        aligned = aligned && pack_aligned(t.in[k], t.gradient[k]);
    return aligned;
}

template <typename T, template <typename> class Work>
static void combine_start(const op_t *op, const combine_tensors<T> &t,
                          const op_args_t *args)
{
    each_start<16 / sizeof(T)>(Work<T>{t}, cuda_channels_elems(&op->out),
                               tensors_aligned(t), cuda_stream(args));
}

/* ---- add ----------------------------------------------------------------- */

static err_code_t add_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = op->config.relu;
    op->passes_dy = !op->config.relu;
    return ERR_OK;
}

static err_code_t add_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->out.layout != NULL)
        combine_start<bf16_t, add_value>(op, tensors_of<bf16_t>(op, args),
                                         args);
    else
        combine_start<float, add_value>(op, tensors_of<float>(op, args), args);
    return cuda_started(op, err);
}

template <typename T>
static void add_backward_start(const op_t *op, const op_args_t *args)
{
    combine_tensors<T> t = tensors_of<T>(op, args);
    bool wanted = false;

    for (int k = 0; k < t.inputs; k++) {
        if (!t.relu && t.gradient[k] == t.dy)
            t.gradient[k] = NULL;
        t.in[k] = NULL;
        wanted = wanted || t.gradient[k] != NULL;
    }
    if (wanted)
        combine_start<T, add_gradient>(op, t, args);
}

static err_code_t add_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->out.layout != NULL)
        add_backward_start<bf16_t>(op, args);
    else
        add_backward_start<float>(op, args);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_add_kernel = {add_open, NULL, add_forward,
                                                add_backward};

/* ---- mul ----------------------------------------------------------------- */

static err_code_t mul_forward(op_t *op, const op_args_t *args, err_t *err)
{
    combine_start<float, mul_value>(op, tensors_of<float>(op, args), args);
    return cuda_started(op, err);
}

static err_code_t mul_backward(op_t *op, const op_args_t *args, err_t *err)
{
    combine_start<float, mul_gradient>(op, tensors_of<float>(op, args), args);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_mul_kernel = {NULL, NULL, mul_forward,
                                                mul_backward};
