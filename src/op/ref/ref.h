/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reference backend: each op in plain loops, written like its formula. It
 * is the specification against which other backends are tested, so it is
 * written to be read, not to be fast. ref_get and ref_put read and write
 * elements of any type, and all arithmetic is in double.
 */
#ifndef CDDP_OP_REF_REF_H
#define CDDP_OP_REF_REF_H

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "op/op_ops.h"

/* Element [i] of a tensor of [type] as double. */
static inline double ref_get(op_type_t type, const void *data, int64_t i)
{
    return type == OP_FLOAT32 ? (double)((const float *)data)[i]
                              : ((const double *)data)[i];
}

/* [value] with 10 bits of mantissa, to nearest, ties to even. */
static inline float ref_round_tf32(float value)
{
    uint32_t bits;

    if (!isfinite(value))
        return value;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* [exact] as a factor of a product: rounded to the op's compute_type. */
static inline double ref_round(const op_t *op, double exact)
{
    float value = (float)exact;
    uint16_t rounded;

    if (op->config.compute_type == OP_TF32)
        return (double)ref_round_tf32(value);
    if (!op_computes_bf16(&op->config))
        return exact;
    half_round_bf16(&rounded, &value, 1);
    half_widen_bf16(&value, &rounded, 1);
    return (double)value;
}

/* Element [i] of a tensor as a factor of a product (see ref_round). */
static inline double ref_factor(const op_t *op, const void *data, int64_t i)
{
    return ref_round(op, ref_get(op->config.in.type, data, i));
}

/* Store [value], rounded to [type], as element [i]. */
static inline void ref_put(op_type_t type, void *data, int64_t i, double value)
{
    if (type == OP_FLOAT32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

/* batchnorm, syncbatchnorm: gamma ([k] 0) or beta ([k] 1) of channel [c]. */
static inline double ref_affine(const op_t *op, const op_args_t *args, int k,
                                int64_t c)
{
    return op->config.norm.bare
               ? 1 - k
               : ref_get(op->config.in.type, args->params[k], c);
}

/* An activation, and its derivative (activation.c). [of] is y for the kinds
 * whose derivative is computed from y, otherwise x. [a]: the constant alpha. */
double ref_activation(op_kind_t kind, double x, double a);
double ref_slope(op_kind_t kind, double of, double a);

/* ref_linear_kernel and so on, as the table of ops names them. */
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    extern const op_kernel_t ref_##ref##_kernel;
#include "op/op_table.inc"
#undef OP

/* losses: the weight of sample [n]. */
static inline double ref_sample_weight(const op_args_t *args, int64_t n)
{
    return args->sample_weights == NULL ? 1 : (double)args->sample_weights[n];
}

#endif
