/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Opening and closing a graph, and queries on its layers. graph_build.c reads
 * the run file, graph_tables.c lays out the parameter arenas, graph_hash.c
 * computes the hash. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/nn_build.h"
#include "nn/plugin.h"
#include "nn/preset.h"

typedef struct model_options {
    const tree_t *input, *plugin, *layers;
} model_options_t;

static const opt_row_t model_rows[] = {
    {.name = "input",
     .type = OPT_TREE,
     .offset = offsetof(model_options_t, input),
     .help = "Shape of one sample, such as [channels, height, width]; several "
             "inputs: a map of names to shapes, {image: [1, 32, 32], meta: "
             "[4]}"},
    {.name = "plugin",
     .type = OPT_TREE,
     .offset = offsetof(model_options_t, plugin),
     .fallback = "",
     .help = "Shared object that defines layers or a model"},
    {.name = "layers",
     .type = OPT_TREE,
     .offset = offsetof(model_options_t, layers),
     .help = "List of layers; each takes the output of the one before it, or "
             "those that its from names"},
    {.name = NULL},
};

/* Copy the shape of the only input to [out]; ERR_CONFIG if there are several,
 * as a preset builds on one input. */
static err_code_t only_input(const nn_graph_t *graph, const tree_t *model,
                             opt_ints_t *out, err_t *err)
{
    const nn_input_t *input = &graph->inputs[0];

    if (graph->input_count > 1)
        return nn_fail_at(tree_place(tree_get(model, "input")), err,
                          "model.input names %d inputs, but a preset takes "
                          "one; put it among model.layers: {preset: {NAME: "
                          "{...}}, from: %s}",
                          graph->input_count, graph->inputs[0].name);
    out->count = input->ndim;
    for (int d = 0; d < input->ndim; d++)
        out->items[d] = input->dims[d];
    return ERR_OK;
}

/* Fill [options]. Layers and losses that a preset or plugin makes are returned
 * in [made]. */
static err_code_t graph_read_model(nn_graph_t *graph, const tree_t *model,
                                   model_options_t *options, nn_built_t *made,
                                   err_t *err)
{
    const bool plugin = model != NULL && tree_get(model, "plugin") != NULL;
    const bool preset = model != NULL && tree_get(model, "preset") != NULL;
    opt_ints_t input;
    err_code_t rc;

    if (plugin && preset)
        return nn_fail_at(tree_place(tree_get(model, "plugin")), err,
                          "the model has a preset and a plugin; take out one "
                          "of them");
    if (plugin) {
        rc = nn_plugin_open(model, &graph->plugin, err);
        if (rc != ERR_OK)
            return rc;
    }
    if (!preset && (!plugin || tree_get(model, "layers") != NULL)) {
        rc = opt_fill(model_rows, model, "model", options, err);
        return rc == ERR_OK ? nn_build_inputs(graph, model, err) : rc;
    }
    /* All keys but input and plugin (or preset) are options of the preset or
     * plugin. */
    rc = nn_build_inputs(graph, model, err);
    if (rc == ERR_OK && plugin)
        rc = nn_plugin_build(graph, model, made, err);
    if (rc == ERR_OK && preset)
        rc = only_input(graph, model, &input, err);
    if (rc == ERR_OK && preset)
        rc = nn_preset_write(model, &input, &made->layers, err);
    options->layers = made->layers;
    return rc;
}

/* Replace `loss: plugin` by the losses that the plugin has [made]. */
static err_code_t graph_read_loss(const nn_graph_t *graph, const tree_t *made,
                                  const tree_t **loss, err_t *err)
{
    const char *text = *loss == NULL ? NULL : tree_text(*loss);

    if (text == NULL || strcmp(text, "plugin") != 0)
        return ERR_OK;
    if (made == NULL || tree_count(made) == 0)
        return nn_fail_at(tree_place(*loss), err,
                          "loss: plugin means the losses of a plugin that "
                          "builds the model, but %s; write the losses here",
                          graph->plugin == NULL ? "the model has no plugin"
                          : made == NULL ? "the layers are in the run file"
                                         : "this one has no loss");
    *loss = made;
    return ERR_OK;
}

err_code_t nn_graph_open(const tree_t *model, const tree_t *loss,
                         nn_graph_t **out, err_t *err)
{
    model_options_t options = {0};
    nn_graph_t *graph = NULL;
    nn_built_t made = {NULL, NULL};
    err_code_t rc;

    rc = mem_new(nn_graph_t, 1, "a model", &graph, err);
    if (rc != ERR_OK)
        return rc;
    rc = graph_read_model(graph, model, &options, &made, err);
    if (rc == ERR_OK)
        rc = nn_build_layers(graph, options.layers, err);
    if (rc == ERR_OK)
        rc = graph_read_loss(graph, made.losses, &loss, err);
    if (rc == ERR_OK)
        rc = nn_build_losses(graph, loss, err);
    if (rc == ERR_OK)
        rc = nn_build_tables(graph, err);
    if (rc == ERR_OK)
        *out = graph;
    else
        nn_graph_close(graph);
    tree_free(made.layers);
    tree_free(made.losses);
    return rc;
}

static void table_free(nn_table_t *table)
{
    for (int i = 0; i < table->count; i++)
        free((char *)table->tensors[i].public.name);
    mem_free(table->tensors);
}

void nn_graph_close(nn_graph_t *graph)
{
    if (graph == NULL)
        return;
    table_free(&graph->params);
    table_free(&graph->buffers);
    if (graph->layers != NULL)
        for (int i = 0; i < graph->layer_count + graph->loss_count; i++) {
            free(graph->layers[i].name);
            free(graph->layers[i].later_options);
            mem_free(graph->layers[i].class_weights);
        }
    mem_free(graph->layers);
    for (int k = 0; k < NN_FIELDS_MAX; k++) {
        free(graph->inputs[k].name);
        free(graph->targets[k].name);
    }
    nn_plugin_close(graph->plugin);
    mem_free(graph);
}

int nn_graph_layers(const nn_graph_t *graph)
{
    return graph->layer_count;
}

nn_layer_info_t nn_graph_layer(const nn_graph_t *graph, int index)
{
    const nn_layer_t *layer = &graph->layers[index];
    nn_layer_info_t info = {
        .name = layer->name,
        .kind = layer->kind->name,
        .ndim = layer->out.ndim - 1,
        .params = layer->param_elems,
        .moments = nn_layer_moments(layer),
    };

    if (info.moments != NN_MOMENTS_NONE)
        info.values =
            nn_sample_elems(&layer->config.in) / layer->config.in.dims[1];
    for (int i = 0; i < info.ndim; i++)
        info.dims[i] = layer->out.dims[i + 1];
    return info;
}
