/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The losses. An op gives the sum over samples; what it is divided by is
 * nn_graph_denominator, as only train knows the samples of all ranks. */
#include "nn/registry.h"

static const opt_row_t no_rows[] = {{.name = NULL}};

static err_code_t cross_entropy_configure(nn_layer_t *layer,
                                          const void *options,
                                          const tree_t *tree, err_t *err)
{
    char shape[NN_SHAPE_TEXT];

    (void)options;
    (void)tree;
    if (layer->config.in.ndim == 2)
        return ERR_OK;
    nn_shape_format(&layer->config.in, shape);
    return err_set(err, ERR_CONFIG,
                   "%s: loss cross_entropy needs an output [classes], but the "
                   "last layer gives %s; end the model with {linear: {out: "
                   "CLASSES}}",
                   layer->place, shape);
}

const nn_kind_t nn_kind_cross_entropy = {
    .name = "cross_entropy",
    .op = OP_CROSS_ENTROPY,
    .help = "Classification: softmax and negative log-likelihood of the target "
            "class, an integer per sample; mean over samples",
    .rows = no_rows,
    .classifier = true,
    .configure = cross_entropy_configure,
};

const nn_kind_t nn_kind_mse = {
    .name = "mse",
    .op = OP_MSE,
    .help = "Regression: squared difference from the target, which has the "
            "output's shape; mean over samples and elements",
    .rows = no_rows,
};

const nn_kind_t nn_kind_mae = {
    .name = "mae",
    .op = OP_MAE,
    .help = "Regression: absolute difference from the target, which has the "
            "output's shape; mean over samples and elements",
    .rows = no_rows,
};

typedef struct huber_options {
    double delta;
} huber_options_t;

_Static_assert(sizeof(huber_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t huber_rows[] = {
    {.name = "delta",
     .type = OPT_REAL,
     .offset = offsetof(huber_options_t, delta),
     .fallback = "1",
     .min = 1e-30,
     .max = 1e30,
     .help = "Difference at which the square becomes a straight line"},
    {.name = NULL},
};

static err_code_t huber_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    const huber_options_t *huber = options;

    (void)tree;
    (void)err;
    layer->config.alpha = huber->delta;
    return ERR_OK;
}

const nn_kind_t nn_kind_huber = {
    .name = "huber",
    .op = OP_HUBER,
    .help = "Regression: half the squared difference from the target where it "
            "is small, a straight line beyond; mean over samples and elements",
    .rows = huber_rows,
    .configure = huber_configure,
};

const nn_kind_t nn_kind_bce = {
    .name = "bce",
    .op = OP_BCE,
    .help = "Yes or no: binary cross entropy of the output's sigmoid and the "
            "target, 0 to 1, which has the output's shape; mean over samples "
            "and elements",
    .rows = no_rows,
};

const nn_kind_t nn_kind_kl = {
    .name = "kl",
    .op = OP_KL,
    .help = "Kullback-Leibler divergence of the target, which holds "
            "probabilities, from the output, which holds their logarithms; "
            "mean over samples and elements",
    .rows = no_rows,
};
