/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers for sequences of tokens, [tokens, features]: attention, learnt
 * positions, and rotary positions. */
#include "nn/registry.h"

typedef struct attention_options {
    int64_t heads, kv_heads;
    bool causal, mask;
} attention_options_t;

_Static_assert(sizeof(attention_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t attention_rows[] = {
    {.name = "heads",
     .type = OPT_INT,
     .offset = offsetof(attention_options_t, heads),
     .min = 1,
     .max = 1 << 16,
     .help = "Number of heads of the queries"},
    {.name = "kv_heads",
     .type = OPT_INT,
     .offset = offsetof(attention_options_t, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = 1 << 16,
     .help = "Number of heads of the keys and values, each of which is used by "
             "heads / kv_heads heads of the queries; 0: as many as heads"},
    {.name = "causal",
     .type = OPT_BOOL,
     .offset = offsetof(attention_options_t, causal),
     .fallback = "false",
     .help = "true: a token attends only to itself and to earlier tokens"},
    {.name = "mask",
     .type = OPT_BOOL,
     .offset = offsetof(attention_options_t, mask),
     .fallback = "false",
     .help = "true: the last input tells which keys to use. It is [keys], with "
             "1 for a key to use and 0 for others (the opposite of PyTorch's "
             "key_padding_mask), or [1], the number of keys to use, from the "
             "first on. Without any key the output is 0"},
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
                     .causal = attention->causal,
                     .masked = attention->mask};
    return ERR_OK;
}

const nn_kind_t nn_kind_attention = {
    .name = "attention",
    .op = OP_ATTENTION,
    .help =
        "Multi-head attention. Its input holds for each token the queries of "
        "all heads, then the keys, then the values, as {linear: {out: 3 x "
        "features, flatten: false}} computes them. With from: [queries, "
        "memory] the second input holds the keys, then the values, of other "
        "tokens (cross-attention). With from: [queries, keys, values] each has "
        "an input of its own. No matrix of all pairs of tokens is stored",
    .rows = attention_rows,
    .most = 4,
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

/* ---- rotary -------------------------------------------------------------- */

typedef struct rotary_options {
    int64_t heads, kv_heads;
    bool packed;
    double base;
    int pairs;
} rotary_options_t;

_Static_assert(sizeof(rotary_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const char *const rotary_pairs[] = {"halves", "neighbours", NULL};

static const opt_row_t rotary_rows[] = {
    {.name = "heads",
     .type = OPT_INT,
     .offset = offsetof(rotary_options_t, heads),
     .min = 1,
     .max = 1 << 16,
     .help =
         "Number of heads of the queries, as in the attention that follows"},
    {.name = "kv_heads",
     .type = OPT_INT,
     .offset = offsetof(rotary_options_t, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = 1 << 16,
     .help = "Number of heads of the keys and values; 0: as many as heads"},
    {.name = "packed",
     .type = OPT_BOOL,
     .offset = offsetof(rotary_options_t, packed),
     .fallback = "true",
     .help =
         "true: the input holds queries, keys and values, and the values do "
         "not change; false: the input holds only queries, or only keys"},
    {.name = "base",
     .type = OPT_REAL,
     .offset = offsetof(rotary_options_t, base),
     .fallback = "10000",
     .min = 1e-3,
     .max = 1e12,
     .help = "Pair i of the D features of a head is rotated by position x "
             "base^(-2i/D), in radians"},
    {.name = "pairs",
     .type = OPT_CHOICE,
     .offset = offsetof(rotary_options_t, pairs),
     .fallback = "halves",
     .choices = rotary_pairs,
     .help = "halves: pair i is the features i and i + D/2 (as in Llama); "
             "neighbours: it is the features 2i and 2i + 1 (as in the paper)"},
    {.name = NULL},
};

static err_code_t rotary_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const rotary_options_t *rotary = options;
    int64_t keys = rotary->kv_heads > 0 ? rotary->kv_heads : rotary->heads;

    (void)tree;
    (void)err;
    layer->config.rotary = (op_rotary_t){
        .parts = rotary->packed ? rotary->heads + 2 * keys : rotary->heads,
        .heads = rotary->packed ? rotary->heads + keys : rotary->heads,
        .base = rotary->base,
        .halves = rotary->pairs == 0};
    return ERR_OK;
}

const nn_kind_t nn_kind_rotary = {
    .name = "rotary",
    .op = OP_ROTARY,
    .help = "Rotary position embedding (Su et al., 2021), to be used before an "
            "attention. Pairs of features of queries and keys are rotated by "
            "an angle proportional to the token's position, so products of "
            "queries and keys depend on distances",
    .rows = rotary_rows,
    .configure = rotary_configure,
};
