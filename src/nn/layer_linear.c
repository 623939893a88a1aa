/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* linear: y = x w' + b. By default an input of several dimensions is flattened
 * first, so that a linear layer may follow a convolution directly. */
#include "nn/registry.h"

typedef struct linear_options {
    int64_t out;
    bool bias, flatten;
} linear_options_t;

_Static_assert(sizeof(linear_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t linear_rows[] = {
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(linear_options_t, out),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of the output"},
    {.name = "bias",
     .type = OPT_BOOL,
     .offset = offsetof(linear_options_t, bias),
     .fallback = "true",
     .help = "Add a learnt vector to the output"},
    {.name = "flatten",
     .type = OPT_BOOL,
     .offset = offsetof(linear_options_t, flatten),
     .fallback = "true",
     .help = "true: flatten an input of several dimensions first; false: apply "
             "the layer to the last dimension, with the same weights at all "
             "indices of the other dimensions"},
    {.name = NULL},
};

static err_code_t linear_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const linear_options_t *linear = options;

    (void)tree;
    (void)err;
    layer->config.out = linear->out;
    layer->config.bias = linear->bias;
    layer->config.last = !linear->flatten;
    return ERR_OK;
}

const nn_kind_t nn_kind_linear = {
    .name = "linear",
    .op = OP_LINEAR,
    .help =
        "Every output is a weighted sum of all inputs. Without bias, the layer "
        "may share the weight of an embedding: it then computes one number for "
        "each token of the vocabulary (tied embeddings; Press and Wolf, 2017)",
    .rows = linear_rows,
    .params = {{"weight", NN_FILL_FAN_IN}, {"bias", NN_FILL_FAN_IN}},
    .shares_with = &nn_kind_embedding,
    .configure = linear_configure,
};
