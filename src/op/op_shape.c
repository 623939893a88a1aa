/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shapes: what an op makes of its input, which parameters it has. Pure
 * functions of the configuration, shared by all backends, so that a model that
 * is accepted once is accepted everywhere.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "op/op_attention.h"
#include "op/op_ops.h"
#include "op/op_spread.h"

char *op_desc_text(const op_desc_t *desc, char out[OP_TEXT_MAX])
{
    int length = snprintf(out, OP_TEXT_MAX, "[");

    for (int i = 0; i < desc->ndim; i++)
        length += snprintf(out + length, (size_t)(OP_TEXT_MAX - length),
                           "%s%" PRId64, i > 0 ? ", " : "", desc->dims[i]);
    snprintf(out + length, (size_t)(OP_TEXT_MAX - length), "]");
    return out;
}

int64_t op_desc_elems(const op_desc_t *desc)
{
    int64_t elems = 1;

    for (int i = 0; i < desc->ndim; i++)
        elems *= desc->dims[i];
    return elems;
}

int64_t op_desc_sample(const op_desc_t *desc)
{
    int64_t elems = 1;

    for (int i = 1; i < desc->ndim; i++)
        elems *= desc->dims[i];
    return elems;
}

int64_t op_desc_space(const op_desc_t *desc)
{
    int64_t elems = 1;

    for (int i = 2; i < desc->ndim; i++)
        elems *= desc->dims[i];
    return elems;
}

int64_t op_linear_features(const op_config_t *config)
{
    return config->last ? config->in.dims[config->in.ndim - 1]
                        : op_desc_sample(&config->in);
}

int64_t op_linear_rows(const op_config_t *config)
{
    return op_desc_elems(&config->in) / op_linear_features(config);
}

size_t op_type_bytes(op_type_t type)
{
    if (type == OP_BFLOAT16)
        return 2;
    return type == OP_FLOAT32 || type == OP_INT32 ? 4 : 8;
}

op_type_t op_desc_lies(const op_desc_t *desc)
{
    return desc->bf16 || desc->narrow ? OP_BFLOAT16 : desc->type;
}

size_t op_desc_stored(const op_desc_t *desc)
{
    return desc->bytes / op_type_bytes(op_desc_lies(desc));
}

op_type_t op_number_type(const op_config_t *config)
{
    return config->kind == OP_EMBEDDING ? config->embedding.type
                                        : config->in.type;
}

void op_desc_fill(op_desc_t *desc, op_type_t type, int ndim,
                  const int64_t *dims)
{
    *desc = (op_desc_t){.type = type, .ndim = ndim};
    for (int i = 0; i < ndim; i++)
        desc->dims[i] = dims[i];
    desc->bytes = (size_t)op_desc_elems(desc) * op_type_bytes(type);
}

/* ---- checks ------------------------------------------------------------- */

static err_code_t check_type(const op_config_t *config, const char *text,
                             err_t *err)
{
    const bool tokens = config->kind == OP_EMBEDDING;
    const op_type_t type = config->in.type;

    if (tokens ? type == OP_INT32 : type == OP_FLOAT32 || type == OP_FLOAT64)
        return ERR_OK;
    if (tokens)
        return err_set(err, ERR_CONFIG,
                       "embedding takes tokens, which are whole numbers, but "
                       "its input %s holds real ones; let it read the model's "
                       "input",
                       text);
    return err_set(err, ERR_CONFIG,
                   "%s takes an input of float32 or float64, but its input %s "
                   "holds integers",
                   op_kind_name(config->kind), text);
}

err_code_t op_check_input(const op_config_t *config, int ndim_min, int ndim_max,
                          const char *expected, err_t *err)
{
    const op_desc_t *in = &config->in;
    char text[OP_TEXT_MAX];
    err_code_t code;

    if (in->ndim < 1 || in->ndim > OP_DIMS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s takes an input of 1 to %d dimensions, not %d",
                       op_kind_name(config->kind), OP_DIMS_MAX, in->ndim);
    op_desc_text(in, text);
    code = check_type(config, text, err);
    if (code != ERR_OK)
        return code;
    for (int i = 0; i < in->ndim; i++)
        if (in->dims[i] < 1)
            return err_set(err, ERR_CONFIG,
                           "%s got the input %s, which has an empty dimension",
                           op_kind_name(config->kind), text);
    if (in->ndim < ndim_min || in->ndim > ndim_max)
        return err_set(err, ERR_CONFIG,
                       "%s takes an input of shape %s, but its input is %s",
                       op_kind_name(config->kind), expected, text);
    return ERR_OK;
}

/* ---- one function per kind ---------------------------------------------- */

static err_code_t op_shape_linear(const op_config_t *config, op_desc_t *out,
                                  err_t *err)
{
    err_code_t code =
        op_check_input(config, 2, OP_DIMS_MAX, "[N, features]", err);
    char text[OP_TEXT_MAX];
    op_desc_t shape;

    if (code != ERR_OK)
        return code;
    if (config->out < 1)
        return err_set(err, ERR_CONFIG,
                       "linear on %s: out is %" PRId64
                       ", but must be at least 1",
                       op_desc_text(&config->in, text), config->out);
    shape = config->in;
    if (!config->last)
        shape.ndim = 2;
    shape.dims[shape.ndim - 1] = config->out;
    op_desc_fill(out, shape.type, shape.ndim, shape.dims);
    return ERR_OK;
}

/* relu, batchnorm, dropout: as the input. */
static err_code_t op_shape_same(const op_config_t *config, op_desc_t *out,
                                err_t *err)
{
    bool norm =
        config->kind == OP_BATCHNORM || config->kind == OP_SYNCBATCHNORM;
    err_code_t code = op_check_input(config, norm ? 2 : 1, OP_DIMS_MAX,
                                     "[N, channels, ...]", err);
    char text[OP_TEXT_MAX];

    if (code != ERR_OK)
        return code;
    if (norm && !(config->epsilon > 0))
        return err_set(err, ERR_CONFIG,
                       "%s on %s: epsilon is %g, but must be positive",
                       op_kind_name(config->kind),
                       op_desc_text(&config->in, text), config->epsilon);
    if (config->kind == OP_BATCHNORM && config->others > 0)
        return op_shape_combine(config, out, err);
    if (config->kind == OP_DROPOUT && !(config->rate >= 0 && config->rate < 1))
        return err_set(err, ERR_CONFIG,
                       "dropout on %s: the rate is %g, but must be at least 0 "
                       "and less than 1",
                       op_desc_text(&config->in, text), config->rate);
    op_desc_fill(out, config->in.type, config->in.ndim, config->in.dims);
    return ERR_OK;
}

static err_code_t op_shape_activation(const op_config_t *config, op_desc_t *out,
                                      err_t *err)
{
    const bool softplus = config->kind == OP_SOFTPLUS;
    err_code_t code = op_check_input(config, 1, OP_DIMS_MAX, "[N, ...]", err);
    char text[OP_TEXT_MAX];

    if (code != ERR_OK)
        return code;
    if (config->kind == OP_SCALE && !isfinite(config->alpha))
        return err_set(err, ERR_CONFIG, "scale on %s: the factor is %g",
                       op_desc_text(&config->in, text), config->alpha);
    if (config->kind != OP_SCALE &&
        (!(config->alpha >= 0) || (softplus && config->alpha == 0)))
        return err_set(
            err, ERR_CONFIG, "%s on %s: the constant is %g, but must be %s",
            op_kind_name(config->kind), op_desc_text(&config->in, text),
            config->alpha, softplus ? "positive" : "at least 0");
    op_desc_fill(out, config->in.type, config->in.ndim, config->in.dims);
    return ERR_OK;
}

static err_code_t op_shape_flatten(const op_config_t *config, op_desc_t *out,
                                   err_t *err)
{
    err_code_t code = op_check_input(config, 1, OP_DIMS_MAX, "[N, ...]", err);

    if (code != ERR_OK)
        return code;
    op_desc_fill(out, config->in.type, 2,
                 (int64_t[]){config->in.dims[0], op_desc_sample(&config->in)});
    return ERR_OK;
}

static err_code_t op_shape_loss(const op_config_t *config, op_desc_t *out,
                                err_t *err)
{
    bool classes = config->kind == OP_CROSS_ENTROPY ||
                   config->kind == OP_CROSS_ENTROPY_SOFT;
    err_code_t code =
        op_check_input(config, classes ? 2 : 1, OP_DIMS_MAX,
                       classes ? "[N, classes, ...]" : "[N, ...]", err);

    if (code != ERR_OK)
        return code;
    if (classes &&
        (config->loss.axis < 0 || config->loss.axis >= config->in.ndim))
        return err_set(err, ERR_CONFIG,
                       "cross_entropy: its input has %d dimensions, but the "
                       "classes lie along number %d",
                       config->in.ndim, config->loss.axis);
    if (classes &&
        !(config->loss.smoothing >= 0 && config->loss.smoothing <= 1))
        return err_set(err, ERR_CONFIG,
                       "cross_entropy: the smoothing is %g, but must be from 0 "
                       "to 1",
                       config->loss.smoothing);
    if (config->kind == OP_HUBER && !(config->alpha > 0))
        return err_set(err, ERR_CONFIG,
                       "huber: the difference at which it becomes straight is "
                       "%g, but must be positive",
                       config->alpha);
    op_desc_fill(out, config->in.type, 1, (int64_t[]){1});
    return ERR_OK;
}

/* ---- parameters; the functions return their number ----------------------- */

static int op_params_linear(const op_config_t *config,
                            op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->in.type, 2,
                 (int64_t[]){config->out, op_linear_features(config)});
    if (config->bias)
        op_desc_fill(&out[1], config->in.type, 1, &config->out);
    return config->bias ? 2 : 1;
}

static int op_params_batchnorm(const op_config_t *config,
                               op_desc_t out[OP_PARAMS_MAX])
{
    if (config->norm.bare)
        return 0;
    op_desc_fill(&out[0], config->in.type, 1, &config->in.dims[1]);
    op_desc_fill(&out[1], config->in.type, 1, &config->in.dims[1]);
    return 2;
}

static int op_params_position(const op_config_t *config,
                              op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->in.type, config->in.ndim - 1,
                 config->in.dims + 1);
    return 1;
}

static int op_params_embedding(const op_config_t *config,
                               op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->embedding.type, 2,
                 (int64_t[]){config->embedding.rows, config->out});
    return 1;
}

static int op_params_prelu(const op_config_t *config,
                           op_desc_t out[OP_PARAMS_MAX])
{
    const int64_t slopes = config->channels ? config->in.dims[1] : 1;

    op_desc_fill(&out[0], config->in.type, 1, &slopes);
    return 1;
}

/* ---- the table ----------------------------------------------------------- */

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
    err_code_t code = op_shape(config, &shape, err);

    if (code != ERR_OK)
        return code;
    *count = 0;
    if (op_rules[config->kind].params != NULL)
        *count = op_rules[config->kind].params(config, out);
    return ERR_OK;
}
