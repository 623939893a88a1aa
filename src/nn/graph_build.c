/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From the list of layers in the run file to a graph of checked layers. Every
 * error is reported with file, line and column, the layer's name and, where
 * shapes disagree, the shapes.
 *
 * Before this, graph_item.c has parsed the list. graph_from.c resolves names.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/nn_build.h"
#include "nn/plugin.h"

/* Maximum elements of one sample of one tensor. A larger number is a typing
 * error. */
#define SAMPLE_LIMIT ((int64_t)1 << 33)
/* Upper bound of any product of a layer's sizes. It is below INT64_MAX, and far
 * above what any memory can store. */
#define PRODUCT_LIMIT 0x1p62

/* An upper bound of all products of the layer's sizes (elements of weight or
 * output). */
static double layer_product(const op_config_t *config)
{
    const int64_t out[] = {config->out, config->conv.out};
    double product = (double)nn_sample_elems(&config->in);

    for (int i = 0; i < 2; i++)
        product *= out[i] > 0 ? (double)out[i] : 1;
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        product *=
            config->conv.kernel[i] > 0 ? (double)config->conv.kernel[i] : 1;
        product *= 1 + 2 * (double)config->conv.pad[i] +
                   (double)config->conv.behind[i];
        if (config->kind == OP_CONV_TRANSPOSE)
            product *= (double)config->conv.stride[i] *
                       (double)config->conv.dilation[i];
        product *= 1 + 2 * (double)config->pool.pad[i];
        product *=
            1 + (double)config->pad.before[i] + (double)config->pad.after[i];
    }
    for (int k = 0; k < config->others; k++)
        if (config->kind == OP_ADD_BROADCAST ||
            config->kind == OP_MUL_BROADCAST || config->kind == OP_MATMUL)
            product *= (double)nn_sample_elems(&config->other[k]);
    for (int i = 0; i < config->view.ndim && i < OP_DIMS_MAX; i++)
        if (config->kind == OP_UPSAMPLE || config->kind == OP_UPSAMPLE_LINEAR ||
            config->kind == OP_ADAPTIVE_AVGPOOL ||
            config->kind == OP_ADAPTIVE_MAXPOOL)
            product *= (double)config->view.dims[i];
    return product;
}

/* Infer the output's shape and check its size. */
err_code_t nn_layer_infer(nn_layer_t *layer, err_t *err)
{
    char shape[NN_SHAPE_TEXT];
    err_code_t rc;

    if (!(layer_product(&layer->config) < PRODUCT_LIMIT))
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s (%s) with input %s: its sizes are too "
                       "large for any computer",
                       layer->place, layer->name, layer->kind->name,
                       nn_shape_format(&layer->config.in, shape));
    rc = op_shape(&layer->config, &layer->out, err);
    if (rc != ERR_OK) {
        nn_shape_format(&layer->config.in, shape);
        err_prefix(err, "%s: layer %s (%s) with input %s", layer->place,
                   layer->name, layer->kind->name, shape);
        return rc;
    }
    if (nn_sample_elems(&layer->out) > SAMPLE_LIMIT)
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s (%s): its output %s is larger than 2^33 "
                       "elements a sample",
                       layer->place, layer->name, layer->kind->name,
                       nn_shape_format(&layer->out, shape));
    return ERR_OK;
}

char *nn_kind_path(const nn_item_t *item, const nn_kind_t *kind,
                   char out[NN_PATH_TEXT + 64])
{
    snprintf(out, NN_PATH_TEXT + 64, "%s.%s", item->path, kind->name);
    return out;
}

/* Describe the output of layer [index], or graph input [index]. */
static void output_desc(const nn_graph_t *graph, int index, op_desc_t *out)
{
    if (nn_is_input(index))
        nn_desc_input(graph, nn_input_of(index), 1, out);
    else
        *out = graph->layers[index].out;
}

/* Note that layer [index] reads [input]. The first reader decides whether the
 * input is tokens or real numbers; all others must agree. */
static err_code_t input_read(nn_graph_t *graph, int index, nn_input_t *input,
                             err_t *err)
{
    const nn_layer_t *layer = &graph->layers[index], *first;

    if (input->reader == NN_INPUT) {
        input->reader = index;
        /* input_count writes the vocabulary later. */
        input->tokens = layer->kind->tokens ? INT32_MAX : 0;
        return ERR_OK;
    }
    first = &graph->layers[input->reader];
    if (first->kind->tokens == layer->kind->tokens)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s: layer %s (%s) takes the input%s%s as %s, but layer %s "
                   "(%s) at %s takes it as %s",
                   layer->place, layer->name, layer->kind->name,
                   graph->input_count > 1 ? " " : "",
                   graph->input_count > 1 ? input->name : "",
                   layer->kind->tokens ? "tokens" : "real numbers", first->name,
                   first->kind->name, first->place,
                   first->kind->tokens ? "tokens" : "real numbers");
}

/* If layer [index] reads an input as tokens: the number of tokens is the
 * smallest vocabulary of all such layers. */
static void input_count(nn_graph_t *graph, int index)
{
    const nn_layer_t *layer = &graph->layers[index];
    const int64_t rows = layer->config.embedding.rows;
    nn_input_t *input;

    if (!layer->kind->tokens || !nn_is_input(layer->from[0]))
        return;
    input = &graph->inputs[nn_input_of(layer->from[0])];
    if (rows < input->tokens)
        input->tokens = rows;
}

/* Build layer [index], whose inputs are known: check their shapes, read its
 * options, infer its output. */
static err_code_t layer_build(nn_graph_t *graph, int index,
                              const nn_item_t *item, err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    char path[NN_PATH_TEXT + 64];
    err_code_t rc = ERR_OK;

    layer->config.kind = layer->kind->op;
    layer->config.training = true;
    layer->config.threads = 1;
    layer->config.others = layer->inputs - 1;
    for (int k = 0; k < layer->inputs && rc == ERR_OK; k++)
        if (nn_is_input(layer->from[k]))
            rc = input_read(graph, index,
                            &graph->inputs[nn_input_of(layer->from[k])], err);
    if (rc != ERR_OK)
        return rc;
    output_desc(graph, layer->from[0], &layer->config.in);
    for (int k = 1; k < layer->inputs; k++)
        output_desc(graph, layer->from[k], &layer->config.other[k - 1]);
    rc = nn_kind_configure(layer, item->options, item->place,
                           nn_kind_path(item, layer->kind, path), err);
    if (rc == ERR_OK)
        rc = nn_init_read(layer, item, err);
    if (rc == ERR_OK)
        rc = nn_layer_infer(layer, err);
    if (rc == ERR_OK)
        input_count(graph, index);
    return rc;
}

/* Find the kinds of all layers and give them names. */
static err_code_t layers_name(nn_graph_t *graph, const nn_items_t *items,
                              err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < items->count && rc == ERR_OK; i++) {
        const nn_item_t *item = &items->items[i];
        nn_layer_t *layer = &graph->layers[i];

        rc = nn_kind_find(nn_plugin_kinds(graph->plugin), "layer", item->kind,
                          item->place, &layer->kind, err);
        if (rc != ERR_OK)
            return rc;
        tree_place_format(item->place, layer->place, sizeof layer->place);
        rc = nn_layer_name(graph, i, item, err);
    }
    return rc;
}

err_code_t nn_build_layers(nn_graph_t *graph, const tree_t *list, err_t *err)
{
    nn_items_t items = {0};
    err_code_t rc;

    rc = nn_items_read(graph, list, &items, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(nn_layer_t, (size_t)items.count + NN_FIELDS_MAX, "the layers",
                 &graph->layers, err);
    if (rc != ERR_OK)
        goto out;
    graph->layer_count = items.count;
    rc = layers_name(graph, &items, err);
    for (int i = 0; i < items.count && rc == ERR_OK; i++) {
        rc = nn_layer_resolve(graph, i, &items.items[i], err);
        if (rc == ERR_OK)
            rc = layer_build(graph, i, &items.items[i], err);
    }
out:
    nn_items_free(&items);
    return rc;
}
