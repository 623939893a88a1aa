/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A plugin that builds the network of examples/ising-two.yaml: two inputs, two
 * losses.
 *
 *   cc -shared -fPIC plugin-two.c $(pkg-config --cflags cddp) -o libtwo.so
 *
 * To use it, replace model and loss in a copy of that run file by:
 *
 *   model: {plugin: ./libtwo.so, input: {spins: [1, 32, 32], heat: [1]}}
 *   loss: plugin
 */
#include <cddp/plugin.h>
#include <stdio.h>

/* Add layers that turn the spins into 2 * [width] numbers, whatever the size of
 * the lattice. */
static void see(const cddp_build_t *build, int width)
{
    const cddp_host_t *host = build->host;
    char options[64];

    for (int stage = 0; stage < 2; stage++) {
        snprintf(options, sizeof options, "out %d kernel 3 pad 1",
                 width << stage);
        host->add(build->builder, "conv", NULL, stage == 0 ? "spins" : NULL,
                  options);
        host->add(build->builder, "relu", NULL, NULL, NULL);
        if (stage == 0)
            host->add(build->builder, "maxpool", NULL, NULL, "kernel 2");
    }
    host->add(build->builder, "mean", NULL, NULL, NULL);
    host->add(build->builder, "flatten", "seen", NULL, NULL);
}

static cddp_code_t build(const cddp_build_t *build, cddp_error_t *error)
{
    const cddp_built_loss_t phase = {
        .kind = "cross_entropy", .from = "which", .target = "phase"};
    const cddp_built_loss_t energy = {
        .kind = "mse", .from = "how_much", .target = "energy", .weight = "0.3"};
    const cddp_host_t *host = build->host;
    const int spins = cddp_input_find(build, "spins");

    if (build->inputs != 2 || spins < 0 || cddp_input_find(build, "heat") < 0)
        return cddp_refuse(error, "the model has two inputs, spins and heat, "
                                  "and model.input must name them");
    if (build->input[spins].ndim != 3)
        return cddp_refuse(error, "spins are [channels, height, width]");
    see(build, (int)build->options[0]);
    host->add(build->builder, "linear", "warmth", "heat", "out 8");
    host->add(build->builder, "concat", NULL, "seen warmth", NULL);
    host->add(build->builder, "linear", NULL, NULL, "out 32");
    host->add(build->builder, "relu", "both", NULL, NULL);
    host->add(build->builder, "linear", "which", "both", "out 2");
    host->add(build->builder, "linear", "how_much", "both", "out 1");
    host->loss(build->builder, &phase);
    host->loss(build->builder, &energy);
    return CDDP_OK;
}

static const cddp_option_t options[] = {
    {.name = "width",
     .help = "Channels of the first convolution",
     .fallback = "8",
     .min = 1,
     .max = 1024,
     .whole = 1},
    {.name = NULL},
};

CDDP_PLUGIN(.options = options, .build = build);
