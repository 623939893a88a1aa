/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The activations and their slopes; op/ref/activation.c has the formulas.
 * [kind] is equal in all threads, so a switch costs next to nothing. */
#ifndef CDDP_OP_CUDA_DEVICE_ACTIVATION_CUH
#define CDDP_OP_CUDA_DEVICE_ACTIVATION_CUH

#include "op/cuda/device/curves.cuh"

static __device__ __forceinline__ float activation_softplus(float x, float a)
{
    return (a * x > 0 ? x : 0 * x) + log1pf(expf(-fabsf(a * x))) / a;
}

static __device__ __forceinline__ float activation_value(op_kind_t kind,
                                                         float x, float a)
{
    switch ((int)kind) {
    case OP_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case OP_ELU:
        return x > 0 ? x : a * expm1f(x);
    case OP_SIGMOID:
        return curve_sigmoid(x);
    case OP_TANH:
        return tanhf(x);
    case OP_SCALE:
        return a * x;
    case OP_GELU:
        return curve<OP_GELU>(x);
    case OP_GELU_TANH:
        return curve<OP_GELU_TANH>(x);
    case OP_SILU:
        return curve<OP_SILU>(x);
    case OP_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
    default:
        return activation_softplus(x, a);
    }
}

/* The derivative, computed from [of]: y of the kinds for which
 * activation_reads_y is true, otherwise x. */
static __device__ __forceinline__ float activation_slope(op_kind_t kind,
                                                         float of, float a)
{
    switch ((int)kind) {
    case OP_LEAKY_RELU:
        return of > 0 ? 1 : a;
    case OP_ELU:
        return of > 0 ? 1 : of + a;
    case OP_SIGMOID:
        return of * (1 - of);
    case OP_TANH:
        return 1 - of * of;
    case OP_SCALE:
        return a;
    case OP_GELU:
        return curve_slope<OP_GELU>(of);
    case OP_GELU_TANH:
        return curve_slope<OP_GELU_TANH>(of);
    case OP_SILU:
        return curve_slope<OP_SILU>(of);
    case OP_HARDSWISH:
        return of <= -3 ? 0 : of >= 3 ? 1 : of / 3 + 0.5f;
    default:
        return curve_sigmoid(a * of);
    }
}

static inline bool activation_reads_y(op_kind_t kind)
{
    return kind == OP_LEAKY_RELU || kind == OP_ELU || kind == OP_SIGMOID ||
           kind == OP_TANH || kind == OP_SCALE;
}

#endif
