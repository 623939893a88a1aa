/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* batchnorm: each channel is brought to mean 0 and variance 1 over batch and
 * space, then scaled and shifted. Its running statistics are buffers, updated
 * with the moments of whole steps (nn_graph_fold_moments). syncbatchnorm takes
 * mean and variance over the samples of all ranks, by reduce_small or reduce_on
 * of nn_bind_t. A frozen syncbatchnorm needs nothing from other ranks, so its
 * op is OP_BATCHNORM. */
#include "nn/registry.h"

typedef struct norm_options {
    double eps, momentum;
    bool affine, frozen;
} norm_options_t;

_Static_assert(sizeof(norm_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t norm_rows[] = {
    {.name = "eps",
     .type = OPT_REAL,
     .offset = offsetof(norm_options_t, eps),
     .fallback = "1e-5",
     .min = 1e-12,
     .max = 1,
     .help = "Added to the variance, so that no division is by zero"},
    {.name = "momentum",
     .type = OPT_REAL,
     .offset = offsetof(norm_options_t, momentum),
     .fallback = "0.1",
     .min = 0,
     .max = 1,
     .help = "Weight of a step's statistics in the running statistics"},
    {.name = "affine",
     .type = OPT_BOOL,
     .offset = offsetof(norm_options_t, affine),
     .fallback = "true",
     .help = "Scale and shift each channel by learnt numbers"},
    {.name = "frozen",
     .type = OPT_BOOL,
     .offset = offsetof(norm_options_t, frozen),
     .fallback = "false",
     .help = "true: use the running statistics in training, too, and do not "
             "update them, as with PyTorch's eval() of the layer. This needs "
             "statistics from an earlier run"},
    {.name = NULL},
};

static err_code_t norm_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    const norm_options_t *norm = options;

    (void)tree;
    (void)err;
    layer->config.epsilon = norm->eps;
    layer->config.norm.bare = !norm->affine;
    layer->config.norm.frozen = norm->frozen;
    if (norm->frozen)
        layer->config.kind = OP_BATCHNORM;
    layer->momentum = norm->momentum;
    return ERR_OK;
}

const nn_kind_t nn_kind_batchnorm = {
    .name = "batchnorm",
    .op = OP_BATCHNORM,
    .help = "Each channel is normalized to mean 0 and variance 1 over the "
            "batch, then scaled and shifted",
    .rows = norm_rows,
    .params = {{"weight", NN_FILL_ONE}, {"bias", NN_FILL_ZERO}},
    .buffers = {{"running_mean", NN_FILL_ZERO}, {"running_var", NN_FILL_ONE}},
    .moments = true,
    .configure = norm_configure,
};

const nn_kind_t nn_kind_syncbatchnorm = {
    .name = "syncbatchnorm",
    .op = OP_SYNCBATCHNORM,
    .help = "batchnorm over the samples of all ranks, for runs with few "
            "samples per rank. Each of these layers needs two small "
            "all-reduces per micro-batch",
    .rows = norm_rows,
    .params = {{"weight", NN_FILL_ONE}, {"bias", NN_FILL_ZERO}},
    .buffers = {{"running_mean", NN_FILL_ZERO}, {"running_var", NN_FILL_ONE}},
    .moments = true,
    .configure = norm_configure,
};
