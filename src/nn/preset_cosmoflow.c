/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cosmoflow: predicts cosmological parameters from a volume of matter density
 * (Mathuriya et al., "CosmoFlow", 2018), in the form that the benchmark MLPerf
 * HPC trains. Stages of convolution, leaky relu and maxpool, each with twice
 * the channels of the one before, are followed by fully connected layers and a
 * tanh scaled to +-1.2.
 *
 * The benchmark pads its kernels of size 2 on one side. Here kernels are padded
 * on both sides, which makes each edge longer by one, and maxpool drops the
 * elements that do not fill a window. For even edges this is the benchmark's
 * network, mirrored.
 */
#include "nn/preset.h"

#define DEPTH_MAX 8

typedef struct cosmoflow_options {
    int64_t out, width, depth, kernel;
    opt_ints_t hidden;
    double dropout;
} cosmoflow_options_t;

_Static_assert(sizeof(cosmoflow_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

#define SIZE(key, field, fallback_text, most, text)                          \
    {                                                                        \
        .name = (key), .type = OPT_INT,                                      \
        .offset = offsetof(cosmoflow_options_t, field),                      \
        .fallback = (fallback_text), .min = 1, .max = (most), .help = (text) \
    }

static const opt_row_t cosmoflow_rows[] = {
    SIZE("out", out, "4", 1 << 20, "Number of predicted numbers"),
    SIZE("width", width, "32", 1 << 16,
         "Number of channels of the first stage; each further stage has twice "
         "as many"),
    SIZE("depth", depth, "5", DEPTH_MAX,
         "Number of stages; each halves the edges of the volume"),
    SIZE("kernel", kernel, "2", 15, "Edge of the kernels, in elements"),
    {.name = "hidden",
     .type = OPT_INTS,
     .offset = offsetof(cosmoflow_options_t, hidden),
     .fallback = "[128, 64]",
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of each hidden layer after the stages"},
    {.name = "dropout",
     .type = OPT_REAL,
     .offset = offsetof(cosmoflow_options_t, dropout),
     .fallback = "0.5",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout after each hidden layer; 0: no dropout"},
    {.name = NULL},
};

static void write_activation(nn_recipe_t *recipe)
{
    recipe->init = NULL;
    nn_recipe_add(recipe, "leaky_relu", NULL, NULL, "slope 0.3");
}

/* Initialize the weights of the layers that follow as the benchmark's framework
 * does. */
static void begin_weights(nn_recipe_t *recipe)
{
    recipe->init = "xavier distribution uniform";
}

static void write_head(nn_recipe_t *recipe, const cosmoflow_options_t *net)
{
    nn_recipe_plain(recipe, "flatten", NULL, NULL);
    for (int i = 0; i < net->hidden.count; i++) {
        begin_weights(recipe);
        nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld",
                      (long long)net->hidden.items[i]);
        write_activation(recipe);
        if (net->dropout > 0)
            nn_recipe_add(recipe, "dropout", NULL, NULL, "rate %.17g",
                          net->dropout);
    }
    begin_weights(recipe);
    nn_recipe_add(recipe, "linear", "head", NULL, "out %lld",
                  (long long)net->out);
    recipe->init = NULL;
    nn_recipe_plain(recipe, "tanh", NULL, NULL);
    nn_recipe_add(recipe, "scale", NULL, NULL, "by 1.2");
}

static err_code_t cosmoflow_write(nn_recipe_t *recipe, const void *options,
                                  err_t *err)
{
    const cosmoflow_options_t *net = options;
    err_code_t rc = nn_recipe_check_input(
        recipe, "cosmoflow", 4, "[channels, depth, height, width]", err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 1; i < 4; i++)
        if (recipe->input[i] >> net->depth == 0)
            return nn_fail_at(recipe->place, err,
                              "preset cosmoflow halves volumes %lld times, so "
                              "each edge must be at least %d, but one is %lld",
                              (long long)net->depth, 1 << net->depth,
                              (long long)recipe->input[i]);
    for (int d = 0; d < (int)net->depth; d++) {
        begin_weights(recipe);
        nn_recipe_add(recipe, "conv", NULL, NULL, "out %lld kernel %lld pad %d",
                      (long long)(net->width << d), (long long)net->kernel,
                      (int)net->kernel / 2);
        write_activation(recipe);
        nn_recipe_add(recipe, "maxpool", NULL, NULL, "kernel 2");
    }
    write_head(recipe, net);
    return ERR_OK;
}

const nn_preset_t nn_preset_cosmoflow = {
    .name = "cosmoflow",
    .help = "A few numbers from a volume: CosmoFlow (Mathuriya et al., 2018), "
            "as the benchmark MLPerf HPC trains it",
    .rows = cosmoflow_rows,
    .write = cosmoflow_write,
};
