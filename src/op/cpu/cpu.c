/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/cpu.h"

#include "base/half.h"
#include "op/cpu/vector/chunk.h"
#include "simd/isa.h"
#include "simd/team.h"
#include "simd/vector.h"

SIMD_CLONES
static void add_float64(double *restrict sum, const double *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

SIMD_CLONES
static void add_float32(float *restrict sum, const float *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

static void add_bf16(uint16_t *sum, const uint16_t *term, size_t count)
{
    float a[CPU_CHUNK], b[CPU_CHUNK];

    for (size_t i = 0; i < count; i += CPU_CHUNK) {
        const size_t left = count - i, n = left < CPU_CHUNK ? left : CPU_CHUNK;

        half_widen_bf16(a, sum + i, n);
        half_widen_bf16(b, term + i, n);
        add_float32(a, b, n);
        half_round_bf16(sum + i, a, n);
    }
}

/* Tensors are float32 or lie as bfloat16, but batch norm's moments are float64
 * in any backend. */
static void cpu_add(void *to, const void *from, size_t count, op_type_t type)
{
    if (type == OP_FLOAT64)
        add_float64(to, from, count);
    else if (type == OP_BFLOAT16)
        add_bf16(to, from, count);
    else
        add_float32(to, from, count);
}

const op_backend_ops_t op_cpu_backend = {
    .name = "cpu",
    .float64 = false,
    .bf16 = simd_has_bf16,
    .private_in = true,
    .fuses = true,
    .kernels =
        {
            [OP_LINEAR] = &cpu_linear_kernel,
            [OP_CONV2D] = &cpu_conv_kernel,
            [OP_CONV_TRANSPOSE] = &cpu_conv_kernel,
            [OP_RELU] = &cpu_relu_kernel,
            [OP_MAXPOOL2D] = &cpu_maxpool_kernel,
            [OP_BATCHNORM] = &cpu_batchnorm_kernel,
            [OP_SYNCBATCHNORM] = &cpu_syncbatchnorm_kernel,
            [OP_DROPOUT] = &cpu_dropout_kernel,
            [OP_FLATTEN] = &cpu_flatten_kernel,
            [OP_CROSS_ENTROPY] = &cpu_cross_entropy_kernel,
            [OP_MSE] = &cpu_mse_kernel,
            [OP_ADD] = &cpu_add_kernel,
            [OP_MUL] = &cpu_mul_kernel,
            [OP_CONCAT] = &cpu_concat_kernel,
            [OP_RESHAPE] = &cpu_flatten_kernel,
            [OP_PERMUTE] = &cpu_permute_kernel,
            [OP_SLICE] = &cpu_slice_kernel,
            [OP_MEAN] = &cpu_mean_kernel,
            [OP_UPSAMPLE] = &cpu_upsample_kernel,
            [OP_UPSAMPLE_LINEAR] = &cpu_upsample_linear_kernel,
            [OP_MAX] = &cpu_max_kernel,
            [OP_PAD] = &cpu_pad_kernel,
            [OP_LEAKY_RELU] = &cpu_activation_kernel,
            [OP_GELU] = &cpu_activation_kernel,
            [OP_GELU_TANH] = &cpu_activation_kernel,
            [OP_SILU] = &cpu_activation_kernel,
            [OP_ELU] = &cpu_activation_kernel,
            [OP_SIGMOID] = &cpu_activation_kernel,
            [OP_TANH] = &cpu_activation_kernel,
            [OP_SOFTPLUS] = &cpu_activation_kernel,
            [OP_SCALE] = &cpu_activation_kernel,
            [OP_LAYERNORM] = &cpu_norm_kernel,
            [OP_RMSNORM] = &cpu_norm_kernel,
            [OP_GROUPNORM] = &cpu_norm_kernel,
            [OP_INSTANCENORM] = &cpu_norm_kernel,
            [OP_AVGPOOL] = &cpu_pool_kernel,
            [OP_ADAPTIVE_AVGPOOL] = &cpu_adaptive_kernel,
            [OP_ADAPTIVE_MAXPOOL] = &cpu_adaptive_kernel,
            [OP_ATTENTION] = &cpu_attention_kernel,
            [OP_POSITION] = &cpu_position_kernel,
            [OP_EMBEDDING] = &cpu_embedding_kernel,
            [OP_LSTM] = &cpu_recurrent_kernel,
            [OP_GRU] = &cpu_recurrent_kernel,
            [OP_ROTARY] = &cpu_rotary_kernel,
            [OP_MAE] = &cpu_pointwise_kernel,
            [OP_HUBER] = &cpu_pointwise_kernel,
            [OP_BCE] = &cpu_pointwise_kernel,
            [OP_KL] = &cpu_pointwise_kernel,
            [OP_CUSTOM] = &cpu_custom_kernel,
            [OP_SOFTMAX] = &cpu_softmax_kernel,
            [OP_LOG_SOFTMAX] = &cpu_softmax_kernel,
            [OP_PRELU] = &cpu_prelu_kernel,
            [OP_ADD_SPREAD] = &cpu_spread_kernel,
            [OP_MUL_SPREAD] = &cpu_spread_kernel,
            [OP_AVGPOOL_CEIL] = &cpu_avgpool_ceil_kernel,
            [OP_MATMUL] = &cpu_matmul_kernel,
            [OP_CROSS_ENTROPY_SOFT] = &cpu_cross_entropy_kernel,
        },
    .stores =
        {
            [OP_CONV2D] = OP_STORE_GIVES,
            [OP_RELU] = OP_STORE_KEEPS,
            [OP_LEAKY_RELU] = OP_STORE_KEEPS,
            [OP_GELU] = OP_STORE_KEEPS,
            [OP_GELU_TANH] = OP_STORE_KEEPS,
            [OP_SILU] = OP_STORE_KEEPS,
            [OP_ELU] = OP_STORE_KEEPS,
            [OP_TANH] = OP_STORE_KEEPS,
            [OP_SCALE] = OP_STORE_KEEPS,
            [OP_MAXPOOL2D] = OP_STORE_KEEPS,
            [OP_AVGPOOL] = OP_STORE_KEEPS,
            [OP_BATCHNORM] = OP_STORE_KEEPS,
            [OP_ADD] = OP_STORE_KEEPS,
            /* these make their inputs plain */
            [OP_LINEAR] = OP_STORE_READS,
            [OP_CONV_TRANSPOSE] = OP_STORE_READS,
            [OP_SYNCBATCHNORM] = OP_STORE_READS,
            [OP_DROPOUT] = OP_STORE_READS,
            [OP_FLATTEN] = OP_STORE_READS,
            [OP_CONCAT] = OP_STORE_READS,
            [OP_RESHAPE] = OP_STORE_READS,
            [OP_PERMUTE] = OP_STORE_READS,
            [OP_SLICE] = OP_STORE_READS,
            [OP_MEAN] = OP_STORE_READS,
            [OP_MAX] = OP_STORE_READS,
            [OP_UPSAMPLE] = OP_STORE_READS,
            [OP_UPSAMPLE_LINEAR] = OP_STORE_READS,
            [OP_PAD] = OP_STORE_READS,
            [OP_SIGMOID] = OP_STORE_READS,
            [OP_SOFTPLUS] = OP_STORE_READS,
            [OP_GROUPNORM] = OP_STORE_READS,
            [OP_INSTANCENORM] = OP_STORE_READS,
            [OP_ADAPTIVE_AVGPOOL] = OP_STORE_READS,
            [OP_ADAPTIVE_MAXPOOL] = OP_STORE_READS,
            [OP_SOFTMAX] = OP_STORE_READS,
            [OP_LOG_SOFTMAX] = OP_STORE_READS,
            [OP_PRELU] = OP_STORE_READS,
            [OP_ADD_SPREAD] = OP_STORE_READS,
            [OP_MUL_SPREAD] = OP_STORE_READS,
            [OP_AVGPOOL_CEIL] = OP_STORE_READS,
            [OP_MATMUL] = OP_STORE_READS,
        },
    .team = simd_team_set,
    .add = cpu_add,
};
