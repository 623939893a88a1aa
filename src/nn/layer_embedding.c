/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* embedding: a learnt vector for each token. It reads an input of the model,
 * whose elements are then tokens (int32) instead of float32. */
#include "nn/registry.h"

typedef struct embedding_options {
    int64_t vocabulary, out;
} embedding_options_t;

_Static_assert(sizeof(embedding_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t embedding_rows[] = {
    {.name = "vocabulary",
     .type = OPT_INT,
     .offset = offsetof(embedding_options_t, vocabulary),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of different tokens; they are the integers from 0 to "
             "vocabulary - 1"},
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(embedding_options_t, out),
     .min = 1,
     .max = 1 << 20,
     .help = "Number of features of a token"},
    {.name = NULL},
};

static err_code_t embedding_configure(nn_layer_t *layer, const void *options,
                                      const tree_t *tree, err_t *err)
{
    const embedding_options_t *embedding = options;

    (void)tree;
    (void)err;
    layer->config.embedding =
        (op_embedding_t){.rows = embedding->vocabulary, .type = OP_FLOAT32};
    layer->config.out = embedding->out;
    return ERR_OK;
}

const nn_kind_t nn_kind_embedding = {
    .name = "embedding",
    .op = OP_EMBEDDING,
    .help =
        "A learnt vector for each token: [tokens] becomes [tokens, out]. It "
        "reads an input of the model, whose numbers must then be integers",
    .rows = embedding_rows,
    .params = {{"weight", NN_FILL_NORMAL}},
    .tokens = true,
    .configure = embedding_configure,
};
