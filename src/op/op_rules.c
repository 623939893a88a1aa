/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The kinds of ops: name, shape of the output, parameters. */
#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/op_shape.h"
#include "op/op_spread.h"

typedef struct op_rule {
    const char *name;
    err_code_t (*shape)(const op_config_t *config, op_desc_t *out, err_t *err);
    int (*params)(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
} op_rule_t;

/* clang-format off */
static const op_rule_t op_rules[OP_KINDS] = {
    [OP_LINEAR] = {"linear", op_shape_linear, op_params_linear},
    [OP_CONV2D] = {"conv", op_shape_window, op_params_conv},
    [OP_CONV_TRANSPOSE] = {"conv_transpose", op_shape_window,
                           op_params_conv_transpose},
    [OP_RELU] = {"relu", op_shape_same, NULL},
    [OP_MAXPOOL2D] = {"maxpool", op_shape_window, NULL},
    [OP_BATCHNORM] = {"batchnorm", op_shape_same, op_params_batchnorm},
    [OP_SYNCBATCHNORM] = {"syncbatchnorm", op_shape_same, op_params_batchnorm},
    [OP_DROPOUT] = {"dropout", op_shape_same, NULL},
    [OP_FLATTEN] = {"flatten", op_shape_flatten, NULL},
    [OP_CROSS_ENTROPY] = {"cross_entropy", op_shape_loss, NULL},
    [OP_MSE] = {"mse", op_shape_loss, NULL},
    [OP_ADD] = {"add", op_shape_combine, NULL},
    [OP_MUL] = {"mul", op_shape_combine, NULL},
    [OP_CONCAT] = {"concat", op_shape_combine, NULL},
    [OP_RESHAPE] = {"reshape", op_shape_view, NULL},
    [OP_PERMUTE] = {"permute", op_shape_view, NULL},
    [OP_SLICE] = {"slice", op_shape_view, NULL},
    [OP_UPSAMPLE_LINEAR] = {"upsample_linear", op_shape_view, NULL},
    [OP_MAX] = {"max", op_shape_view, NULL},
    [OP_PAD] = {"pad", op_shape_pad, NULL},
    [OP_MEAN] = {"mean", op_shape_view, NULL},
    [OP_UPSAMPLE] = {"upsample", op_shape_view, NULL},
    [OP_LEAKY_RELU] = {"leaky_relu", op_shape_activation, NULL},
    [OP_GELU] = {"gelu", op_shape_activation, NULL},
    [OP_GELU_TANH] = {"gelu_tanh", op_shape_activation, NULL},
    [OP_SILU] = {"silu", op_shape_activation, NULL},
    [OP_ELU] = {"elu", op_shape_activation, NULL},
    [OP_SIGMOID] = {"sigmoid", op_shape_activation, NULL},
    [OP_TANH] = {"tanh", op_shape_activation, NULL},
    [OP_SOFTPLUS] = {"softplus", op_shape_activation, NULL},
    [OP_SCALE] = {"scale", op_shape_activation, NULL},
    [OP_LAYERNORM] = {"layernorm", op_shape_norm, op_params_norm},
    [OP_RMSNORM] = {"rmsnorm", op_shape_norm, op_params_norm},
    [OP_GROUPNORM] = {"groupnorm", op_shape_norm, op_params_norm},
    [OP_INSTANCENORM] = {"instancenorm", op_shape_norm, op_params_norm},
    [OP_AVGPOOL] = {"avgpool", op_shape_window, NULL},
    [OP_ADAPTIVE_AVGPOOL] = {"adaptive_avgpool", op_shape_window, NULL},
    [OP_ADAPTIVE_MAXPOOL] = {"adaptive_maxpool", op_shape_window, NULL},
    [OP_ATTENTION] = {"attention", op_shape_attention, NULL},
    [OP_POSITION] = {"position", op_shape_view, op_params_position},
    [OP_EMBEDDING] = {"embedding", op_shape_embedding, op_params_embedding},
    [OP_ROTARY] = {"rotary", op_shape_rotary, NULL},
    [OP_LSTM] = {"lstm", op_shape_recurrent, op_params_recurrent},
    [OP_GRU] = {"gru", op_shape_recurrent, op_params_recurrent},
    [OP_MAE] = {"mae", op_shape_loss, NULL},
    [OP_HUBER] = {"huber", op_shape_loss, NULL},
    [OP_BCE] = {"bce", op_shape_loss, NULL},
    [OP_KL] = {"kl", op_shape_loss, NULL},
    [OP_CUSTOM] = {"custom", op_shape_custom, op_params_custom},
    [OP_SOFTMAX] = {"softmax", op_shape_view, NULL},
    [OP_LOG_SOFTMAX] = {"log_softmax", op_shape_view, NULL},
    [OP_PRELU] = {"prelu", op_shape_view, op_params_prelu},
    [OP_ADD_SPREAD] = {"add", op_shape_spread, NULL},
    [OP_MUL_SPREAD] = {"mul", op_shape_spread, NULL},
    [OP_AVGPOOL_CEIL] = {"avgpool", op_shape_window, NULL},
    [OP_MATMUL] = {"matmul", op_shape_matmul, NULL},
    [OP_CROSS_ENTROPY_SOFT] = {"cross_entropy", op_shape_loss, NULL},
};
/* clang-format on */

const char *op_kind_name(op_kind_t kind)
{
    return op_rules[kind].name;
}

err_code_t op_shape(const op_config_t *config, op_desc_t *out, err_t *err)
{
    if ((unsigned)config->kind >= OP_KINDS)
        return err_set(err, ERR_CONFIG, "there is no op of kind %d",
                       (int)config->kind);
    return op_rules[config->kind].shape(config, out, err);
}

err_code_t op_params(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX],
                     int *count, err_t *err)
{
    op_desc_t shape;
    err_code_t rc = op_shape(config, &shape, err);

    if (rc != ERR_OK)
        return rc;
    *count = 0;
    if (op_rules[config->kind].params != NULL)
        *count = op_rules[config->kind].params(config, out);
    return ERR_OK;
}
