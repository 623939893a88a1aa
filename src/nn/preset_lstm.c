/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lstm: layers of long short-term memory (Hochreiter and Schmidhuber, 1997)
 * over a sequence of vectors, or of tokens after an embedding. A linear head
 * computes one output from the last states, or one for each element of the
 * sequence.
 */
#include <stdio.h>

#include "nn/preset.h"

#define NAME_TEXT 32

typedef struct lstm_options {
    int64_t out, vocabulary, width, depth;
    double dropout;
    bool bidirectional, each;
} lstm_options_t;

_Static_assert(sizeof(lstm_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t lstm_rows[] = {
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(lstm_options_t, out),
     .min = 1,
     .max = 1 << 24,
     .help = "Number of features of the output, such as the number of classes "
             "or of tokens"},
    {.name = "vocabulary",
     .type = OPT_INT,
     .offset = offsetof(lstm_options_t, vocabulary),
     .fallback = "0",
     .min = 0,
     .max = 1 << 24,
     .help = "Number of different tokens, for an input [tokens]; 0: the input "
             "is [tokens, features]"},
    {.name = "width",
     .type = OPT_INT,
     .offset = offsetof(lstm_options_t, width),
     .fallback = "128",
     .min = 1,
     .max = 1 << 20,
     .help = "Number of features of a state and of the embedding"},
    {.name = "depth",
     .type = OPT_INT,
     .offset = offsetof(lstm_options_t, depth),
     .fallback = "1",
     .min = 1,
     .max = 100,
     .help =
         "Number of layers, each of which reads the output of the one before"},
    {.name = "dropout",
     .type = OPT_REAL,
     .offset = offsetof(lstm_options_t, dropout),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout between layers; 0: no dropout"},
    {.name = "bidirectional",
     .type = OPT_BOOL,
     .offset = offsetof(lstm_options_t, bidirectional),
     .fallback = "false",
     .help = "true: each layer reads the sequence in both directions, with "
             "separate weights"},
    {.name = "each",
     .type = OPT_BOOL,
     .offset = offsetof(lstm_options_t, each),
     .fallback = "false",
     .help = "true: an output for each token, [tokens, out]; false: one for "
             "the whole sequence, [out]"},
    {.name = NULL},
};

/* Add layer [number], which reads the layer [before]. If the head computes one
 * output per sequence, the last layer gives its last states only. */
static void write_layer(nn_recipe_t *recipe, const lstm_options_t *lstm,
                        const char *before, int number)
{
    const bool last = !lstm->each && number == (int)lstm->depth;
    const char *once = last ? "true" : "false";
    char name[NAME_TEXT], there[2 * NAME_TEXT], back[2 * NAME_TEXT];
    char both[4 * NAME_TEXT + 1];

    snprintf(name, sizeof name, "l%d", number);
    if (!lstm->bidirectional) {
        nn_recipe_add(recipe, "lstm", name, before, "out %lld last %s",
                      (long long)lstm->width, once);
        return;
    }
    snprintf(there, sizeof there, "%s_there", name);
    snprintf(back, sizeof back, "%s_back", name);
    snprintf(both, sizeof both, "%s %s", there, back);
    nn_recipe_add(recipe, "lstm", there, before, "out %lld last %s",
                  (long long)lstm->width, once);
    nn_recipe_add(recipe, "lstm", back, before, "out %lld reverse true last %s",
                  (long long)lstm->width, once);
    nn_recipe_add(recipe, "concat", name, both, "axis %d", last ? 1 : 2);
}

static err_code_t lstm_write(nn_recipe_t *recipe, const void *options,
                             err_t *err)
{
    const lstm_options_t *lstm = options;
    const bool tokens = lstm->vocabulary > 0;
    char before[NAME_TEXT] = "input";
    err_code_t rc;

    rc = nn_recipe_check_input(recipe, "lstm", tokens ? 1 : 2,
                               tokens ? "[tokens]" : "[tokens, features]", err);
    if (rc != ERR_OK)
        return rc;
    if (tokens) {
        snprintf(before, sizeof before, "tokens");
        nn_recipe_add(recipe, "embedding", before, NULL,
                      "vocabulary %lld out %lld", (long long)lstm->vocabulary,
                      (long long)lstm->width);
    }
    for (int i = 1; i <= (int)lstm->depth; i++) {
        write_layer(recipe, lstm, before, i);
        snprintf(before, sizeof before, "l%d", i);
        if (lstm->dropout > 0 && i < (int)lstm->depth) {
            snprintf(before, sizeof before, "d%d", i);
            nn_recipe_add(recipe, "dropout", before, NULL, "rate %.17g",
                          lstm->dropout);
        }
    }
    nn_recipe_add(recipe, "linear", "head", NULL, "out %lld flatten %s",
                  (long long)lstm->out, lstm->each ? "false" : "true");
    return ERR_OK;
}

const nn_preset_t nn_preset_lstm = {
    .name = "lstm",
    .help = "Long short-term memory (Hochreiter and Schmidhuber, 1997) over "
            "sequences of vectors or tokens, and a linear layer at the end",
    .rows = lstm_rows,
    .write = lstm_write,
};
