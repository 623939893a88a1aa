/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* lstm and gru over [tokens, features]. Several such layers in a row correspond
 * to PyTorch's num_layers. One layer and a reversed one, concatenated,
 * correspond to PyTorch's bidirectional. */
#include "nn/registry.h"

typedef struct recurrent_options {
    int64_t out;
    bool bias, reverse, last;
} recurrent_options_t;

_Static_assert(sizeof(recurrent_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t recurrent_rows[] = {
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(recurrent_options_t, out),
     .min = 1,
     .max = 1 << 20,
     .help = "Number of features of the state, which is the output"},
    {.name = "bias",
     .type = OPT_BOOL,
     .offset = offsetof(recurrent_options_t, bias),
     .fallback = "true",
     .help = "Add learnt vectors in the gates"},
    {.name = "reverse",
     .type = OPT_BOOL,
     .offset = offsetof(recurrent_options_t, reverse),
     .fallback = "false",
     .help = "true: read the tokens from the last to the first; the output "
             "keeps their order"},
    {.name = "last",
     .type = OPT_BOOL,
     .offset = offsetof(recurrent_options_t, last),
     .fallback = "false",
     .help = "true: output only the state after the last step, [out]; false: "
             "output the state after each token, [tokens, out]"},
    {.name = NULL},
};

static err_code_t recurrent_configure(nn_layer_t *layer, const void *options,
                                      const tree_t *tree, err_t *err)
{
    const recurrent_options_t *recurrent = options;

    (void)tree;
    (void)err;
    layer->config.out = recurrent->out;
    layer->config.bias = recurrent->bias;
    layer->config.recurrent = (op_recurrent_t){.reverse = recurrent->reverse,
                                               .last = recurrent->last};
    return ERR_OK;
}

#define RECURRENT_PARAMS                                        \
    {                                                           \
        {"weight_ih", NN_FILL_OUT}, {"weight_hh", NN_FILL_OUT}, \
            {"bias_ih", NN_FILL_OUT},                           \
        {                                                       \
            "bias_hh", NN_FILL_OUT                              \
        }                                                       \
    }

const nn_kind_t nn_kind_lstm = {
    .name = "lstm",
    .op = OP_LSTM,
    .help = "Long short-term memory over [tokens, features]: one layer in one "
            "direction. The order of the gates is PyTorch's (input, forget, "
            "cell, output); the first state is zero",
    .rows = recurrent_rows,
    .params = RECURRENT_PARAMS,
    .configure = recurrent_configure,
};

const nn_kind_t nn_kind_gru = {
    .name = "gru",
    .op = OP_GRU,
    .help = "Gated recurrent unit over [tokens, features]: one layer in one "
            "direction. The order of the gates is PyTorch's (reset, update, "
            "new); the first state is zero",
    .rows = recurrent_rows,
    .params = RECURRENT_PARAMS,
    .configure = recurrent_configure,
};
