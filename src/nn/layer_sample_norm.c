/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The norms over one sample: layernorm, rmsnorm, groupnorm, instancenorm. They
 * compute the same function in training and evaluation. */
#include "nn/registry.h"

typedef struct sample_norm_options {
    double eps;
    bool affine, bias;
    int64_t axis, groups;
} sample_norm_options_t;

_Static_assert(sizeof(sample_norm_options_t) <= NN_OPTIONS_MAX,
               "NN_OPTIONS_MAX");

#define EPS(value)                                                           \
    {                                                                        \
        .name = "eps", .type = OPT_REAL,                                     \
        .offset = offsetof(sample_norm_options_t, eps), .fallback = (value), \
        .min = 1e-12, .max = 1,                                              \
        .help = "Added to the variance, so that no division is by zero"      \
    }
#define AFFINE(value)                                             \
    {                                                             \
        .name = "affine", .type = OPT_BOOL,                       \
        .offset = offsetof(sample_norm_options_t, affine),        \
        .fallback = (value), .help = "Multiply by learnt numbers" \
    }
#define BIAS(value)                                                           \
    {                                                                         \
        .name = "bias", .type = OPT_BOOL,                                     \
        .offset = offsetof(sample_norm_options_t, bias), .fallback = (value), \
        .help = "Add learnt numbers, too; used only if affine is true"        \
    }
#define AXIS                                                                  \
    {                                                                         \
        .name = "axis", .type = OPT_INT,                                      \
        .offset = offsetof(sample_norm_options_t, axis), .fallback = "0",     \
        .min = 0, .max = OP_DIMS_MAX - 1,                                     \
        .help = "First dimension of a sample, counted from 1, of those that " \
                "are normalized together, which end with the last; 0: the "   \
                "last dimension only"                                         \
    }

static err_code_t sample_norm_configure(nn_layer_t *layer, const void *options,
                                        const tree_t *tree, err_t *err)
{
    const sample_norm_options_t *norm = options;

    (void)tree;
    (void)err;
    layer->config.epsilon = norm->eps;
    layer->config.bias = norm->affine && norm->bias;
    layer->config.norm.affine = norm->affine;
    layer->config.norm.groups = norm->groups;
    layer->config.norm.axis =
        norm->axis > 0 ? (int)norm->axis : layer->config.in.ndim - 1;
    return ERR_OK;
}

static const opt_row_t layernorm_rows[] = {
    AXIS, EPS("1e-5"), AFFINE("true"), BIAS("true"), {.name = NULL}};

const nn_kind_t nn_kind_layernorm = {
    .name = "layernorm",
    .op = OP_LAYERNORM,
    .help = "The last dimensions are normalized to mean 0 and variance 1, then "
            "scaled and shifted",
    .rows = layernorm_rows,
    .params = {{"weight", NN_FILL_ONE}, {"bias", NN_FILL_ZERO}},
    .configure = sample_norm_configure,
};

static const opt_row_t rmsnorm_rows[] = {
    AXIS, EPS("1e-6"), AFFINE("true"), {.name = NULL}};

const nn_kind_t nn_kind_rmsnorm = {
    .name = "rmsnorm",
    .op = OP_RMSNORM,
    .help = "The last dimensions are divided by their root mean square, then "
            "scaled",
    .rows = rmsnorm_rows,
    .params = {{"weight", NN_FILL_ONE}},
    .configure = sample_norm_configure,
};

static const opt_row_t groupnorm_rows[] = {
    {.name = "groups",
     .type = OPT_INT,
     .offset = offsetof(sample_norm_options_t, groups),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of groups of channels that are normalized together; it "
             "divides the number of channels"},
    EPS("1e-5"),
    AFFINE("true"),
    BIAS("true"),
    {.name = NULL},
};

const nn_kind_t nn_kind_groupnorm = {
    .name = "groupnorm",
    .op = OP_GROUPNORM,
    .help = "Each group of channels of a sample is normalized to mean 0 and "
            "variance 1, then each channel is scaled and shifted",
    .rows = groupnorm_rows,
    .params = {{"weight", NN_FILL_ONE}, {"bias", NN_FILL_ZERO}},
    .configure = sample_norm_configure,
};

static const opt_row_t instancenorm_rows[] = {
    EPS("1e-5"), AFFINE("false"), BIAS("true"), {.name = NULL}};

const nn_kind_t nn_kind_instancenorm = {
    .name = "instancenorm",
    .op = OP_INSTANCENORM,
    .help = "Each channel of a sample is normalized to mean 0 and variance 1",
    .rows = instancenorm_rows,
    .params = {{"weight", NN_FILL_ONE}, {"bias", NN_FILL_ZERO}},
    .configure = sample_norm_configure,
};
