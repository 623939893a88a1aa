/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Activations that a linear applies to its result, and their derivatives, as
 * functions of x. CURVE is OP_GELU, OP_GELU_TANH, OP_SILU or OP_NONE. */
#ifndef CDDP_OP_CUDA_DEVICE_CURVES_CUH
#define CDDP_OP_CUDA_DEVICE_CURVES_CUH

#include "op/cuda/launch.h"
#include "op/op_kind.h"

/* The normal distribution function. erfc keeps the digits of small values. */
__device__ __forceinline__ float curve_normal(float x)
{
    return 0.5f * erfcf(-0.70710678f * x);
}

/* The argument of the tanh that approximates gelu:
 * sqrt(2/pi) (x + 0.044715 x^3). */
__device__ __forceinline__ float curve_gelu_inner(float x)
{
    return 0.7978845608f * x * (1.0f + 0.044715f * x * x);
}

__device__ __forceinline__ float curve_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

template <op_kind_t CURVE> __device__ __forceinline__ float curve(float x)
{
    if constexpr (CURVE == OP_GELU)
        return x * curve_normal(x);
    if constexpr (CURVE == OP_GELU_TANH)
        return 0.5f * x * (1.0f + tanhf(curve_gelu_inner(x)));
    if constexpr (CURVE == OP_SILU)
        return x * curve_sigmoid(x);
    return x;
}

template <op_kind_t CURVE> __device__ __forceinline__ float curve_slope(float x)
{
    if constexpr (CURVE == OP_GELU)
        return curve_normal(x) + x * 0.3989422804f * expf(-0.5f * x * x);
    if constexpr (CURVE == OP_GELU_TANH) {
        const float t = tanhf(curve_gelu_inner(x));
        const float inner = 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);

        return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
    }
    if constexpr (CURVE == OP_SILU) {
        const float s = curve_sigmoid(x);

        return s * (1.0f + x * (1.0f - s));
    }
    return 1.0f;
}

#endif
