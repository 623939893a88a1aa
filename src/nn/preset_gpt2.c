/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * gpt2: a decoder-only transformer on tokens (Radford et al., "Language Models
 * are Unsupervised Multitask Learners", 2019): learnt positions, blocks of
 * causal attention and mlp with a norm before each of the two parts, and a head
 * that shares the embedding's weight. Weights are initialized normally with
 * standard deviation 0.02. In layers that add to the residual stream, this
 * deviation is divided by the square root of the number of such layers, so that
 * the stream's variance does not grow with the depth.
 */
#include <math.h>
#include <stdio.h>

#include "nn/preset.h"

#define NAME_TEXT 32
#define STD 0.02

typedef struct gpt2_options {
    int64_t vocabulary, width, depth, heads, mlp;
    double dropout;
    bool tied;
} gpt2_options_t;

_Static_assert(sizeof(gpt2_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

#define SIZE(key, field, fallback_text, most, text)                          \
    {                                                                        \
        .name = (key), .type = OPT_INT,                                      \
        .offset = offsetof(gpt2_options_t, field),                           \
        .fallback = (fallback_text), .min = 1, .max = (most), .help = (text) \
    }

static const opt_row_t gpt2_rows[] = {
    SIZE("vocabulary", vocabulary, "50257", 1 << 24,
         "Number of different tokens; they are the integers from 0 to "
         "vocabulary - 1"),
    SIZE("width", width, "768", 1 << 20, "Number of features of a token"),
    SIZE("depth", depth, "12", 1000,
         "Number of blocks; each has an attention and an mlp"),
    SIZE("heads", heads, "12", 1 << 16,
         "Number of heads of the attention; it divides width"),
    SIZE("mlp", mlp, "4", 64,
         "Number of hidden features of an mlp, in multiples of width"),
    {.name = "dropout",
     .type = OPT_REAL,
     .offset = offsetof(gpt2_options_t, dropout),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout after the embedding, each attention and each "
             "mlp; 0: no dropout. GPT-2 was trained with 0.1"},
    {.name = "tied",
     .type = OPT_BOOL,
     .offset = offsetof(gpt2_options_t, tied),
     .fallback = "true",
     .help = "true: the last linear layer shares the embedding's weight"},
    {.name = NULL},
};

static void write_linear(nn_recipe_t *recipe, const char *name, int64_t out,
                         double std)
{
    nn_recipe_add(recipe, "linear", name, NULL, "out %lld flatten false",
                  (long long)out);
    nn_recipe_normal(recipe, std);
}

static void write_dropout(nn_recipe_t *recipe, const gpt2_options_t *gpt,
                          const char *name)
{
    if (gpt->dropout > 0)
        nn_recipe_add(recipe, "dropout", name, NULL, "rate %.17g",
                      gpt->dropout);
}

/* Add the last layers of a part of a block, and the shortcut from [before]. */
static void write_end(nn_recipe_t *recipe, const gpt2_options_t *gpt,
                      const char *part, const char *before, const char *name)
{
    char from[4 * NAME_TEXT], end[2 * NAME_TEXT];

    snprintf(end, sizeof end, "%s_out", part);
    write_linear(recipe, end, gpt->width, STD / sqrt(2 * (double)gpt->depth));
    if (gpt->dropout > 0)
        snprintf(end, sizeof end, "%s_drop", part);
    write_dropout(recipe, gpt, end);
    snprintf(from, sizeof from, "%s %s", before, end);
    nn_recipe_plain(recipe, "add", name, from);
}

static void write_block(nn_recipe_t *recipe, const gpt2_options_t *gpt,
                        const char *before, int number)
{
    char part[NAME_TEXT], in[2 * NAME_TEXT], middle[NAME_TEXT], name[NAME_TEXT];

    snprintf(part, sizeof part, "b%d_attention", number);
    snprintf(in, sizeof in, "%s_in", part);
    snprintf(middle, sizeof middle, "b%d_middle", number);
    nn_recipe_plain(recipe, "layernorm", NULL, before);
    write_linear(recipe, in, 3 * gpt->width, STD);
    nn_recipe_add(recipe, "attention", NULL, NULL, "heads %lld causal true",
                  (long long)gpt->heads);
    write_end(recipe, gpt, part, before, middle);
    snprintf(part, sizeof part, "b%d_mlp", number);
    snprintf(in, sizeof in, "%s_in", part);
    snprintf(name, sizeof name, "b%d", number);
    nn_recipe_plain(recipe, "layernorm", NULL, NULL);
    write_linear(recipe, in, gpt->mlp * gpt->width, STD);
    nn_recipe_add(recipe, "gelu", NULL, NULL, "approximate tanh");
    write_end(recipe, gpt, part, middle, name);
}

static err_code_t gpt2_check(const nn_recipe_t *recipe,
                             const gpt2_options_t *gpt, err_t *err)
{
    err_code_t rc = nn_recipe_check_input(recipe, "gpt2", 1, "[tokens]", err);

    if (rc == ERR_OK)
        rc = nn_recipe_check_heads(recipe, "gpt2", gpt->width, gpt->heads, err);
    return rc;
}

static err_code_t gpt2_write(nn_recipe_t *recipe, const void *options,
                             err_t *err)
{
    const gpt2_options_t *gpt = options;
    char before[NAME_TEXT] = "start";
    err_code_t rc = gpt2_check(recipe, gpt, err);

    if (rc != ERR_OK)
        return rc;
    nn_recipe_add(recipe, "embedding", "tokens", NULL,
                  "vocabulary %lld out %lld", (long long)gpt->vocabulary,
                  (long long)gpt->width);
    nn_recipe_normal(recipe, STD);
    nn_recipe_plain(recipe, "position", gpt->dropout > 0 ? "positions" : before,
                    NULL);
    nn_recipe_normal(recipe, STD);
    write_dropout(recipe, gpt, before);
    for (int b = 1; b <= (int)gpt->depth; b++) {
        write_block(recipe, gpt, before, b);
        snprintf(before, sizeof before, "b%d", b);
    }
    nn_recipe_plain(recipe, "layernorm", "norm", NULL);
    nn_recipe_add(recipe, "linear", "head", NULL,
                  "out %lld bias false flatten false",
                  (long long)gpt->vocabulary);
    if (gpt->tied)
        nn_recipe_share(recipe, "tokens");
    else
        nn_recipe_normal(recipe, STD);
    return ERR_OK;
}

const nn_preset_t nn_preset_gpt2 = {
    .name = "gpt2",
    .help = "Transformer decoder (Radford et al., 2019) that predicts the next "
            "token for each token; by default GPT-2 with 124 million "
            "parameters. Its input [tokens] is a sequence of that length, as "
            "data.sequence cuts it",
    .rows = gpt2_rows,
    .write = gpt2_write,
};
