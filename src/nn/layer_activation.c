/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The activations, which are elementwise functions on any shape, and
 * softmax. */
#include "nn/registry.h"

typedef struct activation_options {
    double alpha;
    int approximate;
} activation_options_t;

_Static_assert(sizeof(activation_options_t) <= NN_OPTIONS_MAX,
               "NN_OPTIONS_MAX");

static const opt_row_t no_rows[] = {{.name = NULL}};

/* The option row of the function's constant. */
#define ALPHA(key, fallback_text, least, text)                   \
    {                                                            \
        .name = (key), .type = OPT_REAL,                         \
        .offset = offsetof(activation_options_t, alpha),         \
        .fallback = (fallback_text), .min = (least), .max = 1e6, \
        .help = (text)                                           \
    }

static err_code_t alpha_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    (void)tree;
    (void)err;
    layer->config.alpha = ((const activation_options_t *)options)->alpha;
    return ERR_OK;
}

static const opt_row_t leaky_relu_rows[] = {
    ALPHA("slope", "0.01", 0, "Factor of negative numbers"),
    {.name = NULL},
};

const nn_kind_t nn_kind_leaky_relu = {
    .name = "leaky_relu",
    .op = OP_LEAKY_RELU,
    .help = "Negative numbers are multiplied by a small slope",
    .rows = leaky_relu_rows,
    .configure = alpha_configure,
};

static const opt_row_t elu_rows[] = {
    ALPHA("alpha", "1", 0,
          "The constant alpha; large negative numbers become nearly -alpha"),
    {.name = NULL},
};

const nn_kind_t nn_kind_elu = {
    .name = "elu",
    .op = OP_ELU,
    .help = "Negative numbers x become alpha (exp(x) - 1)",
    .rows = elu_rows,
    .configure = alpha_configure,
};

static const opt_row_t softplus_rows[] = {
    ALPHA("beta", "1", 1e-6,
          "The constant beta; a larger one is closer to relu"),
    {.name = NULL},
};

const nn_kind_t nn_kind_softplus = {
    .name = "softplus",
    .op = OP_SOFTPLUS,
    .help = "A smooth relu, log(1 + exp(beta x)) / beta",
    .rows = softplus_rows,
    .configure = alpha_configure,
};

static const opt_row_t scale_rows[] = {
    {.name = "by",
     .type = OPT_REAL,
     .offset = offsetof(activation_options_t, alpha),
     .min = -1e6,
     .max = 1e6,
     .help = "The constant"},
    {.name = NULL},
};

const nn_kind_t nn_kind_scale = {
    .name = "scale",
    .op = OP_SCALE,
    .help = "Every number is multiplied by the same constant",
    .rows = scale_rows,
    .configure = alpha_configure,
};

/* ---- gelu ---------------------------------------------------------------- */

static const char *const approximations[] = {"none", "tanh", NULL};

static const opt_row_t gelu_rows[] = {
    {.name = "approximate",
     .type = OPT_CHOICE,
     .offset = offsetof(activation_options_t, approximate),
     .fallback = "none",
     .choices = approximations,
     .help = "none: exact, with the error function; tanh: the approximation "
             "that GPT-2 uses"},
    {.name = NULL},
};

static err_code_t gelu_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    (void)tree;
    (void)err;
    if (((const activation_options_t *)options)->approximate == 1)
        layer->config.kind = OP_GELU_TANH;
    return ERR_OK;
}

const nn_kind_t nn_kind_gelu = {
    .name = "gelu",
    .op = OP_GELU,
    .help = "x times the cumulative normal distribution function of x",
    .rows = gelu_rows,
    .configure = gelu_configure,
};

/* ---- without options ----------------------------------------------------- */

const nn_kind_t nn_kind_silu = {
    .name = "silu",
    .op = OP_SILU,
    .help = "x times sigmoid(x), also called swish",
    .rows = no_rows,
};

const nn_kind_t nn_kind_hardswish = {
    .name = "hardswish",
    .op = OP_HARDSWISH,
    .help = "x times min(max(x + 3, 0), 6) / 6: silu without an exponential",
    .rows = no_rows,
};

const nn_kind_t nn_kind_sigmoid = {
    .name = "sigmoid",
    .op = OP_SIGMOID,
    .help = "1 / (1 + exp(-x))",
    .rows = no_rows,
};

const nn_kind_t nn_kind_tanh = {
    .name = "tanh",
    .op = OP_TANH,
    .help = "Hyperbolic tangent",
    .rows = no_rows,
};

/* ---- prelu --------------------------------------------------------------- */

typedef struct prelu_options {
    bool channels;
} prelu_options_t;

_Static_assert(sizeof(prelu_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t prelu_rows[] = {
    {.name = "channels",
     .type = OPT_BOOL,
     .offset = offsetof(prelu_options_t, channels),
     .fallback = "false",
     .help = "true: one slope for each channel, which is dimension 1 of a "
             "sample (PyTorch's num_parameters); false: one slope for all"},
    {.name = NULL},
};

static err_code_t prelu_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    (void)tree;
    (void)err;
    layer->config.channels = ((const prelu_options_t *)options)->channels;
    return ERR_OK;
}

const nn_kind_t nn_kind_prelu = {
    .name = "prelu",
    .op = OP_PRELU,
    .help = "Negative numbers are multiplied by a learnt slope, which begins "
            "at 0.25",
    .rows = prelu_rows,
    .params = {{"weight", NN_FILL_QUARTER}},
    .configure = prelu_configure,
};

/* ---- softmax ------------------------------------------------------------- */

typedef struct softmax_options {
    int64_t axis;
} softmax_options_t;

_Static_assert(sizeof(softmax_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t softmax_rows[] = {
    {.name = "axis",
     .type = OPT_INT,
     .offset = offsetof(softmax_options_t, axis),
     .fallback = "0",
     .min = 0,
     .max = OP_DIMS_MAX - 1,
     .help = "Dimension of a sample over which the sum goes; 1: the channels; "
             "0: the last dimension"},
    {.name = NULL},
};

static err_code_t softmax_configure(nn_layer_t *layer, const void *options,
                                    const tree_t *tree, err_t *err)
{
    const int64_t axis = ((const softmax_options_t *)options)->axis;
    op_view_t *view = &layer->config.view;

    (void)tree;
    (void)err;
    view->axis = axis > 0 ? (int)axis : layer->config.in.ndim - 1;
    view->axis_last = view->axis;
    return ERR_OK;
}

const nn_kind_t nn_kind_softmax = {
    .name = "softmax",
    .op = OP_SOFTMAX,
    .help = "exp(x) divided by its sum along one dimension: positive numbers "
            "that sum to 1. Do not use it before the loss cross_entropy, which "
            "contains it",
    .rows = softmax_rows,
    .configure = softmax_configure,
};

const nn_kind_t nn_kind_log_softmax = {
    .name = "log_softmax",
    .op = OP_LOG_SOFTMAX,
    .help = "The logarithm of softmax, as the loss kl expects it",
    .rows = softmax_rows,
    .configure = softmax_configure,
};
