/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/ref/ref.h"

static void ref_add(void *to, const void *from, size_t count, op_type_t type)
{
    for (int64_t i = 0; i < (int64_t)count; i++)
        ref_put(type, to, i, ref_get(type, to, i) + ref_get(type, from, i));
}

const op_backend_ops_t op_ref_backend = {
    .name = "ref",
    .float64 = true,
    .kernels =
        {
            [OP_LINEAR] = &ref_linear_kernel,
            [OP_CONV2D] = &ref_conv_kernel,
            [OP_CONV_TRANSPOSE] = &ref_conv_transpose_kernel,
            [OP_RELU] = &ref_relu_kernel,
            [OP_MAXPOOL2D] = &ref_pool_kernel,
            [OP_BATCHNORM] = &ref_batchnorm_kernel,
            [OP_SYNCBATCHNORM] = &ref_syncbatchnorm_kernel,
            [OP_DROPOUT] = &ref_dropout_kernel,
            [OP_FLATTEN] = &ref_flatten_kernel,
            [OP_CROSS_ENTROPY] = &ref_cross_entropy_kernel,
            [OP_MSE] = &ref_mse_kernel,
            [OP_ADD] = &ref_add_kernel,
            [OP_MUL] = &ref_mul_kernel,
            [OP_CONCAT] = &ref_concat_kernel,
            [OP_RESHAPE] = &ref_flatten_kernel,
            [OP_PERMUTE] = &ref_permute_kernel,
            [OP_SLICE] = &ref_slice_kernel,
            [OP_MEAN] = &ref_mean_kernel,
            [OP_UPSAMPLE] = &ref_upsample_kernel,
            [OP_UPSAMPLE_LINEAR] = &ref_upsample_linear_kernel,
            [OP_MAX] = &ref_max_kernel,
            [OP_PAD] = &ref_pad_kernel,
            [OP_LEAKY_RELU] = &ref_activation_kernel,
            [OP_GELU] = &ref_activation_kernel,
            [OP_GELU_TANH] = &ref_activation_kernel,
            [OP_SILU] = &ref_activation_kernel,
            [OP_ELU] = &ref_activation_kernel,
            [OP_SIGMOID] = &ref_activation_kernel,
            [OP_TANH] = &ref_activation_kernel,
            [OP_SOFTPLUS] = &ref_activation_kernel,
            [OP_SCALE] = &ref_activation_kernel,
            [OP_LAYERNORM] = &ref_norm_kernel,
            [OP_RMSNORM] = &ref_norm_kernel,
            [OP_GROUPNORM] = &ref_norm_kernel,
            [OP_INSTANCENORM] = &ref_norm_kernel,
            [OP_AVGPOOL] = &ref_pool_kernel,
            [OP_ADAPTIVE_AVGPOOL] = &ref_adaptive_kernel,
            [OP_ADAPTIVE_MAXPOOL] = &ref_adaptive_max_kernel,
            [OP_ATTENTION] = &ref_attention_kernel,
            [OP_POSITION] = &ref_position_kernel,
            [OP_EMBEDDING] = &ref_embedding_kernel,
            [OP_LSTM] = &ref_recurrent_kernel,
            [OP_GRU] = &ref_recurrent_kernel,
            [OP_ROTARY] = &ref_rotary_kernel,
            [OP_MAE] = &ref_pointwise_kernel,
            [OP_HUBER] = &ref_pointwise_kernel,
            [OP_BCE] = &ref_pointwise_kernel,
            [OP_KL] = &ref_pointwise_kernel,
            [OP_CUSTOM] = &ref_custom_kernel,
            [OP_SOFTMAX] = &ref_softmax_kernel,
            [OP_LOG_SOFTMAX] = &ref_softmax_kernel,
            [OP_PRELU] = &ref_prelu_kernel,
            [OP_ADD_SPREAD] = &ref_spread_kernel,
            [OP_MUL_SPREAD] = &ref_spread_kernel,
            [OP_AVGPOOL_CEIL] = &ref_pool_kernel,
            [OP_MATMUL] = &ref_matmul_kernel,
        },
    .add = ref_add,
};
