/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The CPU backend: oneDNN for what it does well (conv, products that are small
 * or of bfloat16, average pools, reorders), own loops for the rest. Arithmetic
 * is float32, or products of numbers rounded to bfloat16; tensors may lie as
 * bfloat16. Private layouts are those of oneDNN (cpu_md_t): conv chooses, the
 * ops behind it follow, flatten and the losses go back to plain.
 */
#ifndef CDDP_OP_CPU_CPU_H
#define CDDP_OP_CPU_CPU_H

#include "op/op_ops.h"

extern const op_kernel_t cpu_syncbatchnorm_kernel;
extern const op_kernel_t cpu_linear_kernel, cpu_conv_kernel, cpu_relu_kernel,
    cpu_maxpool_kernel, cpu_pool_kernel, cpu_batchnorm_kernel,
    cpu_dropout_kernel, cpu_flatten_kernel, cpu_cross_entropy_kernel,
    cpu_mse_kernel;
extern const op_kernel_t cpu_add_kernel, cpu_mul_kernel, cpu_concat_kernel,
    cpu_slice_kernel, cpu_permute_kernel, cpu_mean_kernel, cpu_upsample_kernel;
extern const op_kernel_t cpu_activation_kernel;
extern const op_kernel_t cpu_norm_kernel;
extern const op_kernel_t cpu_adaptive_kernel;
extern const op_kernel_t cpu_attention_kernel, cpu_position_kernel;
extern const op_kernel_t cpu_upsample_linear_kernel, cpu_max_kernel,
    cpu_pad_kernel;
extern const op_kernel_t cpu_recurrent_kernel;
extern const op_kernel_t cpu_embedding_kernel, cpu_rotary_kernel;
extern const op_kernel_t cpu_pointwise_kernel, cpu_custom_kernel;
extern const op_kernel_t cpu_softmax_kernel, cpu_prelu_kernel;
extern const op_kernel_t cpu_spread_kernel, cpu_matmul_kernel;
extern const op_kernel_t cpu_avgpool_ceil_kernel;

/* Space as three dimensions: numbers of its [space] dimensions go last, [fill]
 * stands for those that are not there. */
static inline void cpu_space_three(const int64_t *from, int space, int64_t fill,
                                   int64_t to[OP_SPACE_MAX])
{
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        const int d = i - (OP_SPACE_MAX - space);

        to[i] = d < 0 ? fill : from[d];
    }
}

#endif
