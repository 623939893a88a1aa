/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reference backend: each op in plain loops, as one would write it on
 * paper. It is the specification that other backends are tested against, so it
 * is written to be read, not to be fast: elements are fetched and stored by
 * ref_get and ref_put whatever their type, and all arithmetic is in double.
 */
#ifndef CDDP_OP_REF_REF_H
#define CDDP_OP_REF_REF_H

#include "base/half.h"
#include "op/op_ops.h"

/* Element [i] of a tensor of [type] as double. */
static inline double ref_get(op_type_t type, const void *data, int64_t i)
{
    return type == OP_FLOAT32 ? (double)((const float *)data)[i]
                              : ((const double *)data)[i];
}

/* [exact] as a factor of a product: rounded to bfloat16 if the op says so. */
static inline double ref_narrow(const op_t *op, double exact)
{
    float value = (float)exact;
    uint16_t narrow;

    if (!op->config.bf16)
        return exact;
    half_round_bf16(&narrow, &value, 1);
    half_widen_bf16(&value, &narrow, 1);
    return (double)value;
}

/* Element [i] of a tensor of numbers as a factor. */
static inline double ref_factor(const op_t *op, const void *data, int64_t i)
{
    return ref_narrow(op, ref_get(op->config.in.type, data, i));
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

/* An activation, and its slope (activation.c), of x but for those that say y;
 * [a] is its constant. */
double ref_activation(op_kind_t kind, double x, double a);
double ref_slope(op_kind_t kind, double of, double a);

extern const op_kernel_t ref_linear_kernel, ref_conv_kernel, ref_relu_kernel,
    ref_pool_kernel, ref_batchnorm_kernel, ref_dropout_kernel,
    ref_flatten_kernel, ref_cross_entropy_kernel, ref_mse_kernel,
    ref_cross_entropy_soft_kernel;
extern const op_kernel_t ref_add_kernel, ref_mul_kernel, ref_concat_kernel,
    ref_slice_kernel, ref_permute_kernel, ref_mean_kernel, ref_upsample_kernel;
extern const op_kernel_t ref_activation_kernel;
extern const op_kernel_t ref_norm_kernel;
extern const op_kernel_t ref_adaptive_kernel;
extern const op_kernel_t ref_adaptive_max_kernel;
extern const op_kernel_t ref_attention_kernel, ref_position_kernel;
extern const op_kernel_t ref_upsample_linear_kernel, ref_max_kernel,
    ref_pad_kernel;
extern const op_kernel_t ref_conv_transpose_kernel;
extern const op_kernel_t ref_recurrent_kernel;
extern const op_kernel_t ref_embedding_kernel, ref_rotary_kernel;
extern const op_kernel_t ref_syncbatchnorm_kernel;
extern const op_kernel_t ref_pointwise_kernel, ref_custom_kernel;
extern const op_kernel_t ref_softmax_kernel, ref_prelu_kernel;
extern const op_kernel_t ref_spread_kernel, ref_matmul_kernel;

/* losses: what the loss of sample [n] is multiplied by */
static inline double ref_sample_weight(const op_args_t *args, int64_t n)
{
    return args->sample_weights == NULL ? 1 : (double)args->sample_weights[n];
}

#endif
