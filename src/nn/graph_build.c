/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From the list of layers in the run file to the chain of checked layers. Every
 * fault is reported with file, line and column, the layer's name and, where
 * shapes disagree, the shapes.
 *
 * A layer is written as a name (relu), or as a map with one kind as key
 * ({conv: {out: 32, kernel: 3}}) and, if wanted, name and from.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/nn_priv.h"

/* Elements of one sample of one tensor; a larger number is a typing error. */
#define SAMPLE_LIMIT ((int64_t)1 << 33)
/* Bound of everything that a layer's sizes are multiplied to, below INT64_MAX;
 * far above what any memory holds. */
#define PRODUCT_LIMIT 0x1p62
#define PATH_TEXT 128

/* One item of the list, taken apart; kind is never NULL. */
typedef struct item {
    const char *kind;
    tree_place_t place;    /* of the kind */
    const tree_t *options; /* NULL: none were written */
    const tree_t *name, *from;
} item_t;

static err_code_t fail_at(tree_place_t place, err_t *err, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

/* ERR_CONFIG with "file:line:column: " before the sentence. */
static err_code_t fail_at(tree_place_t place, err_t *err, const char *format,
                          ...)
{
    char at[NN_PLACE_TEXT], text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tree_place_format(place, at, sizeof at);
    return err_set(err, ERR_CONFIG, "%s: %s", at, text);
}

/* Take apart a map with one kind as key. [what] is "layer" or "loss"; only a
 * layer has name and from. */
static err_code_t item_read_map(const tree_t *tree, const char *what,
                                bool layer, item_t *item, err_t *err)
{
    for (size_t i = 0; i < tree_count(tree); i++) {
        const char *key = tree_key(tree, i);

        if (layer && strcmp(key, "name") == 0) {
            item->name = tree_at(tree, i);
        } else if (layer && strcmp(key, "from") == 0) {
            item->from = tree_at(tree, i);
        } else if (item->kind != NULL) {
            return fail_at(tree_key_place(tree, i), err,
                           "one %s has two kinds, '%s' and '%s'; options "
                           "are indented below their kind, and every layer "
                           "begins with its own dash",
                           what, item->kind, key);
        } else {
            item->kind = key;
            item->place = tree_key_place(tree, i);
            item->options = tree_at(tree, i);
        }
    }
    if (item->kind == NULL)
        return fail_at(tree_place(tree), err, "this %s names no kind", what);
    return ERR_OK;
}

static err_code_t item_read(const tree_t *tree, const char *what, bool layer,
                            const char *example, item_t *out, err_t *err)
{
    item_t item = {.kind = NULL};
    err_code_t code;

    if (tree_kind(tree) == TREE_SCALAR) {
        item.kind = tree_text(tree);
        item.place = tree_place(tree);
    } else if (tree_kind(tree) == TREE_MAP) {
        code = item_read_map(tree, what, layer, &item, err);
        if (code != ERR_OK)
            return code;
    } else {
        return fail_at(tree_place(tree), err,
                       "a %s is a name or a map with one kind, such as %s",
                       what, example);
    }
    *out = item;
    return ERR_OK;
}

/* Which number among the layers of its kind, from 1? */
static int kind_number(const nn_graph_t *graph, const nn_layer_t *layer)
{
    int number = 1;

    for (const nn_layer_t *other = graph->layers; other < layer; other++)
        number += other->kind == layer->kind;
    return number;
}

/* Names become parts of dataset paths and of dotted names. */
static bool name_is_valid(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return false;
    return name[0] != '\0' && strcmp(name, "input") != 0;
}

static err_code_t layer_set_name(nn_graph_t *graph, nn_layer_t *layer,
                                 const item_t *item, err_t *err)
{
    const char *name = item->name == NULL ? NULL : tree_text(item->name);
    tree_place_t place =
        item->name == NULL ? item->place : tree_place(item->name);

    if (item->name != NULL && (name == NULL || !name_is_valid(name)))
        return fail_at(place, err,
                       "a layer's name is made of letters, digits, _ and - "
                       "(and is not 'input'), but this is '%s'",
                       name == NULL ? "" : name);
    layer->name = name != NULL ? str_dup(name)
                               : str_printf("%s%d", layer->kind->name,
                                            kind_number(graph, layer));
    for (const nn_layer_t *other = graph->layers; other < layer; other++)
        if (strcmp(other->name, layer->name) == 0)
            return fail_at(place, err,
                           "two layers are called '%s', this one and the one "
                           "at %s; give one of them another name",
                           layer->name, other->place);
    return ERR_OK;
}

/* In a chain, from: may only say what is so anyway. */
static err_code_t layer_check_from(const nn_graph_t *graph,
                                   const nn_layer_t *layer, const tree_t *from,
                                   err_t *err)
{
    const char *before = layer == graph->layers ? "input" : (layer - 1)->name;
    const char *named;

    if (from == NULL)
        return ERR_OK;
    if (tree_kind(from) == TREE_LIST && tree_count(from) == 1)
        from = tree_at(from, 0);
    named = tree_text(from);
    if (named != NULL && strcmp(named, before) == 0)
        return ERR_OK;
    return fail_at(tree_place(from), err,
                   "layer %s: from names '%s', but branching graphs are not "
                   "available in this version: every layer takes the one "
                   "before it, here '%s'",
                   layer->name, named == NULL ? "several layers" : named,
                   before);
}

/* No product of the layer's sizes (weight, output) is larger than this. */
static double layer_product(const op_config_t *config)
{
    const int64_t out[] = {config->out, config->conv.out};
    double product = (double)nn_sample_elems(&config->in);

    for (int i = 0; i < 2; i++) {
        product *= out[i] > 0 ? (double)out[i] : 1;
        product *=
            config->conv.kernel[i] > 0 ? (double)config->conv.kernel[i] : 1;
        product *= 1 + 2 * (double)config->conv.pad[i];
        product *= 1 + 2 * (double)config->pool.pad[i];
    }
    return product;
}

/* Infer the output's shape and check its size. */
static err_code_t layer_infer(nn_layer_t *layer, err_t *err)
{
    char shape[NN_SHAPE_TEXT];
    err_code_t code;

    if (!(layer_product(&layer->config) < PRODUCT_LIMIT))
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s (%s) with input %s: its sizes are too "
                       "large for any computer",
                       layer->place, layer->name, layer->kind->name,
                       nn_shape_format(&layer->config.in, shape));
    code = op_shape(&layer->config, &layer->out, err);
    if (code != ERR_OK) {
        nn_shape_format(&layer->config.in, shape);
        err_prefix(err, "%s: layer %s (%s) with input %s", layer->place,
                   layer->name, layer->kind->name, shape);
        return code;
    }
    if (nn_sample_elems(&layer->out) > SAMPLE_LIMIT)
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s (%s): its output %s is larger than 2^33 "
                       "elements a sample",
                       layer->place, layer->name, layer->kind->name,
                       nn_shape_format(&layer->out, shape));
    return ERR_OK;
}

static err_code_t layer_build(nn_graph_t *graph, int index, const tree_t *tree,
                              const op_desc_t *in, err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    char path[PATH_TEXT];
    item_t item = {.kind = NULL};
    err_code_t code;

    code = item_read(tree, "layer", true, "{conv: {out: 32, kernel: 3}}", &item,
                     err);
    if (code != ERR_OK)
        return code;
    code = nn_kind_find(nn_layer_kinds(), "layer", item.kind, item.place,
                        &layer->kind, err);
    if (code != ERR_OK)
        return code;
    tree_place_format(item.place, layer->place, sizeof layer->place);
    layer->config.kind = layer->kind->op;
    layer->config.in = *in;
    layer->config.training = true;
    layer->config.threads = 1;
    code = layer_set_name(graph, layer, &item, err);
    if (code == ERR_OK)
        code = layer_check_from(graph, layer, item.from, err);
    if (code != ERR_OK)
        return code;
    snprintf(path, sizeof path, "model.layers[%d].%s", index,
             layer->kind->name);
    code = nn_kind_configure(layer, item.options, item.place, path, err);
    return code == ERR_OK ? layer_infer(layer, err) : code;
}

err_code_t nn_build_layers(nn_graph_t *graph, const tree_t *list, err_t *err)
{
    op_desc_t in;
    size_t count;
    void *block;
    err_code_t code;

    if (tree_kind(list) != TREE_LIST || tree_count(list) == 0)
        return fail_at(tree_place(list), err,
                       "model.layers must be a list with at least one layer, "
                       "one dash each");
    count = tree_count(list);
    /* One more for the loss. */
    code = mem_alloc((count + 1) * sizeof *graph->layers, "the layers", &block,
                     err);
    if (code != ERR_OK)
        return code;
    graph->layers = block;
    graph->layer_count = (int)count;
    nn_desc_plain(&in, 1, graph->input_ndim, graph->input);
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = layer_build(graph, (int)i, tree_at(list, i), &in, err);
        in = graph->layers[i].out;
    }
    return code;
}

err_code_t nn_build_loss(nn_graph_t *graph, const tree_t *loss, err_t *err)
{
    nn_layer_t *layer = &graph->layers[graph->layer_count];
    char path[PATH_TEXT];
    item_t item = {.kind = NULL};
    err_code_t code;

    if (loss == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no loss; add a line such as 'loss: "
                       "cross_entropy'");
    code = item_read(loss, "loss", false, "cross_entropy", &item, err);
    if (code != ERR_OK)
        return code;
    code = nn_kind_find(nn_loss_kinds(), "loss", item.kind, item.place,
                        &layer->kind, err);
    if (code != ERR_OK)
        return code;
    tree_place_format(item.place, layer->place, sizeof layer->place);
    layer->name = str_dup(layer->kind->name);
    layer->config.kind = layer->kind->op;
    layer->config.in = graph->layers[graph->layer_count - 1].out;
    layer->config.training = true;
    layer->config.need_dx = true;
    layer->config.threads = 1;
    snprintf(path, sizeof path, "loss.%s", layer->kind->name);
    code = nn_kind_configure(layer, item.options, item.place, path, err);
    return code == ERR_OK ? layer_infer(layer, err) : code;
}
