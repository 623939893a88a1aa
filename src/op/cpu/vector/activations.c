/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Two loops, forward and backward, for each activation. Most activations are
 * polynomials, so this file is compiled with fused multiply-add where the
 * vector unit has it, like gemm_small.c.
 */
#include "op/cpu/vector/activations.h"

#include <string.h>

#include "simd/math.h"
#include "simd/vector.h"

/* Define the function [name]: to[i] = [value], an expression of x and alpha,
 * for [count] elements, a multiple of SIMD_LANES. Elements are computed in
 * blocks of constant size, so that the same instructions, with the same fused
 * operations, compute every element. */
#define CPU_LOOP(name, value)                                                  \
    SIMD_CLONES                                                                \
    static void name(const float *from, float alpha, float *to, int64_t count) \
    {                                                                          \
        (void)alpha;                                                           \
        for (int64_t i = 0; i < count; i += SIMD_LANES) {                      \
            SIMD_INDEPENDENT                                                   \
            for (int k = 0; k < SIMD_LANES; k++) {                             \
                float x = from[i + k];                                         \
                                                                               \
                to[i + k] = (value);                                           \
            }                                                                  \
        }                                                                      \
    }

#define CPU_LOOP_BACK(name, slope)                                    \
    SIMD_CLONES                                                       \
    static void name(const float *from, const float *dy, float alpha, \
                     float *to, int64_t count)                        \
    {                                                                 \
        (void)alpha;                                                  \
        for (int64_t i = 0; i < count; i += SIMD_LANES) {             \
            SIMD_INDEPENDENT                                          \
            for (int k = 0; k < SIMD_LANES; k++) {                    \
                float x = from[i + k];                                \
                                                                      \
                to[i + k] = dy[i + k] * (slope);                      \
            }                                                         \
        }                                                             \
    }

/* x for x > 0, [low] for x <= 0. NaN stays NaN. */
#define CPU_ABOVE(x, low) ((x) <= 0 ? (low) : (x))

#define CPU_SQRT_2_PI 0.79788456f /* sqrt(2/pi) */

SIMD_INLINE float gelu_gate(float x)
{
    float u = CPU_SQRT_2_PI * (x + 0.044715f * x * x * x);

    return simd_math_sigmoid(2.0f * u);
}

SIMD_INLINE float gelu_tanh_slope(float x)
{
    float s = gelu_gate(x);
    float inner = 2.0f * CPU_SQRT_2_PI * (1.0f + 0.134145f * x * x);

    return s + x * s * (1.0f - s) * inner;
}

SIMD_INLINE float gelu_slope(float x)
{
    float density = 0.39894228f * simd_math_exp(-0.5f * x * x);

    return simd_math_normal(x) + x * density;
}

SIMD_INLINE float silu_slope(float x)
{
    float s = simd_math_sigmoid(x);

    return s + x * s * (1.0f - s);
}

SIMD_INLINE float softplus(float x, float alpha)
{
    float z = alpha * x;

    return CPU_ABOVE(x, 0.0f) +
           simd_math_log1p(simd_math_exp(-fabsf(z))) / alpha;
}

SIMD_INLINE float hardswish(float x)
{
    float inner = x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;

    return x <= -3.0f ? 0.0f : inner;
}

SIMD_INLINE float hardswish_slope(float x)
{
    float inner = x >= 3.0f ? 1.0f : x / 3.0f + 0.5f;

    return x <= -3.0f ? 0.0f : inner;
}

CPU_LOOP(leaky_forward, CPU_ABOVE(x, alpha *x))
CPU_LOOP(elu_forward, CPU_ABOVE(x, alpha *simd_math_expm1(x)))
CPU_LOOP(sigmoid_forward, simd_math_sigmoid(x))
CPU_LOOP(tanh_forward, simd_math_tanh(x))
CPU_LOOP(scale_forward, alpha *x)
CPU_LOOP(gelu_forward, x *simd_math_normal(x))
CPU_LOOP(gelu_tanh_forward, x *gelu_gate(x))
CPU_LOOP(silu_forward, x *simd_math_sigmoid(x))
CPU_LOOP(softplus_forward, softplus(x, alpha))
CPU_LOOP(hardswish_forward, hardswish(x))

CPU_LOOP_BACK(leaky_backward, x > 0 ? 1.0f : alpha)
CPU_LOOP_BACK(elu_backward, x > 0 ? 1.0f : x + alpha)
CPU_LOOP_BACK(sigmoid_backward, x *(1.0f - x))
CPU_LOOP_BACK(tanh_backward, 1.0f - x * x)
CPU_LOOP_BACK(scale_backward, ((void)x, alpha))
CPU_LOOP_BACK(gelu_backward, gelu_slope(x))
CPU_LOOP_BACK(gelu_tanh_backward, gelu_tanh_slope(x))
CPU_LOOP_BACK(silu_backward, silu_slope(x))
CPU_LOOP_BACK(softplus_backward, simd_math_sigmoid(alpha *x))
CPU_LOOP_BACK(hardswish_backward, hardswish_slope(x))

static const cpu_activation_loops_t activations[OP_KINDS] = {
    [OP_LEAKY_RELU] = {leaky_forward, leaky_backward, .of_y = true},
    [OP_ELU] = {elu_forward, elu_backward, .of_y = true},
    [OP_SIGMOID] = {sigmoid_forward, sigmoid_backward, true, true},
    [OP_TANH] = {tanh_forward, tanh_backward, .of_y = true},
    [OP_SCALE] = {scale_forward, scale_backward, .of_y = true},
    [OP_GELU] = {gelu_forward, gelu_backward, false, false},
    [OP_GELU_TANH] = {gelu_tanh_forward, gelu_tanh_backward, false, false},
    [OP_SILU] = {silu_forward, silu_backward, false, false},
    [OP_SOFTPLUS] = {softplus_forward, softplus_backward, .fills = true},
    [OP_HARDSWISH] = {hardswish_forward, hardswish_backward, false, false},
};

cpu_activation_t cpu_activation_of(op_kind_t kind, double alpha)
{
    return (cpu_activation_t){&activations[kind], (float)alpha};
}

void cpu_activation_forward(cpu_activation_t activation, const float *x,
                            float *to, int64_t count)
{
    const float alpha = activation.alpha;
    const int64_t rest = count % SIMD_LANES, whole = count - rest;
    float last[SIMD_LANES] = {0};

    activation.loops->forward(x, alpha, to, whole);
    if (rest == 0)
        return;
    memcpy(last, x + whole, (size_t)rest * sizeof *last);
    activation.loops->forward(last, alpha, last, SIMD_LANES);
    memcpy(to + whole, last, (size_t)rest * sizeof *last);
}

void cpu_activation_backward(cpu_activation_t activation, const float *of,
                             const float *dy, float *to, int64_t count)
{
    const float alpha = activation.alpha;
    const int64_t rest = count % SIMD_LANES, whole = count - rest;
    float last[SIMD_LANES] = {0}, slope[SIMD_LANES] = {0};

    activation.loops->backward(of, dy, alpha, to, whole);
    if (rest == 0)
        return;
    memcpy(last, of + whole, (size_t)rest * sizeof *last);
    memcpy(slope, dy + whole, (size_t)rest * sizeof *slope);
    activation.loops->backward(last, slope, alpha, last, SIMD_LANES);
    memcpy(to + whole, last, (size_t)rest * sizeof *last);
}
