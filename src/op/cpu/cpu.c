/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/cpu.h"

#include "op/cpu/onednn.h"

#include "op/cpu/team.h"
#include "op/cpu/vector.h"

CPU_CLONES
static void add_float64(double *restrict sum, const double *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

CPU_CLONES
static void add_float32(float *restrict sum, const float *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

/* Tensors are float32, but batch norm's moments are float64 in any backend. */
static void cpu_add(void *to, const void *from, size_t count, op_type_t type)
{
    if (type == OP_FLOAT64)
        add_float64(to, from, count);
    else
        add_float32(to, from, count);
}

const op_backend_ops_t op_cpu_backend = {
    .name = "cpu",
    .float64 = false,
    .bf16 = cpu_has_bf16,
    .private_in = true,
    .fuses = true,
    .kernels =
        {
            [OP_LINEAR] = &cpu_linear_kernel,
            [OP_CONV2D] = &cpu_conv_kernel,
            [OP_CONV_TRANSPOSE] = &cpu_conv_kernel,
            [OP_RELU] = &cpu_relu_kernel,
            [OP_MAXPOOL2D] = &cpu_pool_kernel,
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
        },
    .team = cpu_team_set,
    .add = cpu_add,
};
