/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers for sequences of tokens, [tokens, features]: attention, and the
 * learnt positions that tell tokens apart. */
#include "nn/registry.h"

typedef struct attention_options {
    int64_t heads, kv_heads;
    bool causal;
} attention_options_t;

_Static_assert(sizeof(attention_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t attention_rows[] = {
    {.name = "heads",
     .type = OPT_INT,
     .offset = offsetof(attention_options_t, heads),
     .min = 1,
     .max = 1 << 16,
     .help = "Heads of queries"},
    {.name = "kv_heads",
     .type = OPT_INT,
     .offset = offsetof(attention_options_t, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = 1 << 16,
     .help = "Heads of keys and values, each for heads / kv_heads "
             "heads of queries; 0: as many"},
    {.name = "causal",
     .type = OPT_BOOL,
     .offset = offsetof(attention_options_t, causal),
     .fallback = "false",
     .help = "A token sees itself and earlier ones only"},
    {.name = NULL},
};

static err_code_t attention_configure(nn_layer_t *layer, const void *options,
                                      const tree_t *tree, err_t *err)
{
    const attention_options_t *attention = options;

    (void)tree;
    (void)err;
    layer->config.heads =
        (op_heads_t){.heads = attention->heads,
                     .kv_heads = attention->kv_heads > 0 ? attention->kv_heads
                                                         : attention->heads,
                     .causal = attention->causal};
    return ERR_OK;
}

const nn_kind_t nn_kind_attention = {
    .name = "attention",
    .op = OP_ATTENTION,
    .help = "Multi-head attention. Its input holds for each token the queries "
            "of all heads, then the keys, then the values, as {linear: {out: 3 "
            "x features, flatten: false}} makes them; it computes no matrix of "
            "all pairs of tokens",
    .rows = attention_rows,
    .configure = attention_configure,
};

static const opt_row_t no_rows[] = {{.name = NULL}};

const nn_kind_t nn_kind_position = {
    .name = "position",
    .op = OP_POSITION,
    .help =
        "Add a learnt tensor of the shape of a sample, such as an embedding "
        "of each token's position",
    .rows = no_rows,
    .params = {{"weight", NN_FILL_ZERO}},
};
