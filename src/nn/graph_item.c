/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Parsing the list of layers. A layer is written as a name (relu), or as a map
 * with one kind as key ({conv: {out: 32, kernel: 3}}) and optionally the keys
 * name, from, share and init. {repeat: {times: 3, layers: [...]}} stands for
 * its layers, three times. {preset: {lenet: {...}}, from: image} stands for the
 * layers of a preset that reads an input. Both are expanded here.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "nn/nn_build.h"
#include "nn/preset.h"

/* Maximum number of layers of a model, after repeats are expanded. A larger
 * number is a typing error. */
#define LAYERS_LIMIT 20000
/* Maximum depth of nested repeats. */
#define DEPTH_LIMIT 4

typedef struct repeat_options {
    int64_t times;
    const tree_t *layers;
} repeat_options_t;

static const opt_row_t repeat_rows[] = {
    {.name = "times",
     .type = OPT_INT,
     .offset = offsetof(repeat_options_t, times),
     .min = 1,
     .max = LAYERS_LIMIT,
     .help = "How many times the layers are repeated"},
    {.name = "layers",
     .type = OPT_TREE,
     .offset = offsetof(repeat_options_t, layers),
     .help = "List of layers, as that of the model"},
    {.name = NULL},
};

/* State of the walk through the list of layers. */
typedef struct walk {
    const nn_graph_t *graph; /* the graph, whose inputs are known */
    nn_items_t *out;
    int room;          /* items allocated in out */
    int depth;         /* number of repeats around the list */
    const char *path;  /* option path of the list */
    const char *scope; /* suffix of names in the list */
    int start;         /* the layer that `entry` refers to, or NN_INPUT */
} walk_t;

/* The member of [item] for [key] of a layer. NULL: [key] is a kind. */
static const tree_t **layer_key(nn_item_t *item, const char *key)
{
    if (strcmp(key, "name") == 0)
        return &item->name;
    if (strcmp(key, "from") == 0)
        return &item->from;
    if (strcmp(key, "init") == 0)
        return &item->init;
    return strcmp(key, "share") == 0 ? &item->share : NULL;
}

/* The member of [item] for [key] of a loss. NULL: [key] is a kind. */
static const tree_t **loss_key(nn_item_t *item, const char *key)
{
    if (strcmp(key, "name") == 0)
        return &item->name;
    if (strcmp(key, "from") == 0)
        return &item->from;
    if (strcmp(key, "weight") == 0)
        return &item->weight;
    if (strcmp(key, "sample_weight") == 0)
        return &item->sample_weight;
    return strcmp(key, "target") == 0 ? &item->target : NULL;
}

/* What differs between the parsing of a layer and of a loss. */
typedef struct item_form {
    const char *what;    /* "layer" or "loss", for messages */
    const char *example; /* for messages */
    const tree_t **(*key)(nn_item_t *item, const char *key);
} item_form_t;

static const item_form_t layer_form = {"layer", "{conv: {out: 32, kernel: 3}}",
                                       layer_key};
static const item_form_t loss_form = {"loss", "cross_entropy", loss_key};

/* Parse a map with one kind as key, and the further keys of [form]. */
static err_code_t item_read_map(const tree_t *tree, const item_form_t *form,
                                nn_item_t *item, err_t *err)
{
    for (size_t i = 0; i < tree_count(tree); i++) {
        const char *key = tree_key(tree, i);
        const tree_t **field = form->key(item, key);

        if (field != NULL) {
            *field = tree_at(tree, i);
        } else if (item->kind != NULL) {
            return nn_fail_at(tree_key_place(tree, i), err,
                              "one %s has two kinds, '%s' and '%s'; options "
                              "are indented below their kind, and every layer "
                              "begins with its own dash",
                              form->what, item->kind, key);
        } else {
            item->kind = key;
            item->place = tree_key_place(tree, i);
            item->options = tree_at(tree, i);
        }
    }
    if (item->kind == NULL)
        return nn_fail_at(tree_place(tree), err, "this %s names no kind",
                          form->what);
    return ERR_OK;
}

/* Parse [tree], a layer or a loss, into [item]. */
static err_code_t item_read(const tree_t *tree, const item_form_t *form,
                            nn_item_t *item, err_t *err)
{
    if (tree_kind(tree) == TREE_MAP)
        return item_read_map(tree, form, item, err);
    if (tree_kind(tree) != TREE_SCALAR)
        return nn_fail_at(tree_place(tree), err,
                          "a %s is a name or a map with one kind, such as %s",
                          form->what, form->example);
    item->kind = tree_text(tree);
    item->place = tree_place(tree);
    return ERR_OK;
}

err_code_t nn_items_read_losses(const tree_t *tree, nn_item_t *out, int *count,
                                err_t *err)
{
    const bool list = tree_kind(tree) == TREE_LIST;
    const size_t items = list ? tree_count(tree) : 1;
    err_code_t rc = ERR_OK;

    if (items < 1 || items > NN_FIELDS_MAX)
        return nn_fail_at(tree_place(tree), err,
                          "loss is one loss or a list of 1 to %d, but has %zu",
                          NN_FIELDS_MAX, items);
    for (size_t i = 0; i < items && rc == ERR_OK; i++) {
        nn_item_t item = {.path = "loss"};

        if (list)
            snprintf(item.path, sizeof item.path, "loss[%zu]", i);
        rc = item_read(list ? tree_at(tree, i) : tree, &loss_form, &item, err);
        out[i] = item;
    }
    *count = (int)items;
    return rc;
}

static err_code_t items_append(nn_items_t *items, int *room,
                               const nn_item_t *item, err_t *err)
{
    nn_item_t *larger = NULL;
    err_code_t rc;

    if (items->count == LAYERS_LIMIT)
        return nn_fail_at(item->place, err,
                          "the model has more than %d layers; check the "
                          "repeats",
                          LAYERS_LIMIT);
    if (items->count == *room) {
        int more = *room == 0 ? 64 : 2 * *room;

        rc = mem_new(nn_item_t, (size_t)more, "the layers", &larger, err);
        if (rc != ERR_OK)
            return rc;
        if (items->count > 0)
            memcpy(larger, items->items,
                   (size_t)items->count * sizeof *items->items);
        mem_free(items->items);
        items->items = larger;
        *room = more;
    }
    items->items[items->count++] = *item;
    return ERR_OK;
}

static err_code_t walk_list(walk_t *walk, const tree_t *list, err_t *err);

/* Append the layers of a repeat. */
static err_code_t walk_repeat(walk_t *walk, const nn_item_t *item, err_t *err)
{
    repeat_options_t options = {0};
    char path[NN_PATH_TEXT + 16], scope[NN_SCOPE_TEXT];
    walk_t inner = *walk;
    err_code_t rc;

    if (item->name != NULL || item->from != NULL || item->share != NULL ||
        item->init != NULL)
        return nn_fail_at(item->place, err,
                          "a repeat takes what the layer before it gives and "
                          "has no name, from, share or init; its layers have");
    if (walk->depth == DEPTH_LIMIT)
        return nn_fail_at(item->place, err,
                          "more than %d repeats are inside of each other",
                          DEPTH_LIMIT);
    snprintf(path, sizeof path, "%s.repeat", item->path);
    rc = opt_fill(repeat_rows, item->options, path, &options, err);
    if (rc != ERR_OK)
        return rc;
    snprintf(path, sizeof path, "%s.repeat.layers", item->path);
    inner.path = path;
    inner.scope = scope;
    inner.depth++;
    for (int64_t r = 1; r <= options.times && rc == ERR_OK; r++) {
        snprintf(scope, sizeof scope, "%s_%d", walk->scope, (int)r);
        inner.start =
            walk->out->count - 1; /* NN_INPUT if no layer comes before */
        rc = walk_list(&inner, options.layers, err);
    }
    walk->room = inner.room;
    opt_free(repeat_rows, &options);
    return rc;
}

/* ---- presets among the layers -------------------------------------------- */

/* Find the input that the preset [item] reads. */
static err_code_t preset_input(const walk_t *walk, const nn_item_t *item,
                               int *out, err_t *err)
{
    const nn_graph_t *graph = walk->graph;
    const char *name = item->from == NULL ? NULL : tree_text(item->from);

    if (item->from == NULL && graph->input_count == 1 && walk->out->count == 0)
        name = graph->inputs[0].name;
    if (name != NULL && strcmp(name, "input") == 0 && graph->input_count == 1)
        name = graph->inputs[0]
                   .name; /* `input` is the only input, as for other layers */
    for (int k = 0; k < graph->input_count && name != NULL; k++)
        if (strcmp(graph->inputs[k].name, name) == 0) {
            *out = k;
            return ERR_OK;
        }
    return nn_fail_at(item->from == NULL ? item->place : tree_place(item->from),
                      err,
                      "a preset among the layers reads an input of the model, "
                      "but its from is %s%s%s; such as {preset: {lenet: "
                      "{classes: 10}}, from: %s}",
                      name == NULL ? "" : "'", name == NULL ? "no name" : name,
                      name == NULL ? "" : "'", graph->inputs[0].name);
}

/* Make the layers that the preset [item] stands for. walk->out->made owns
 * them. */
static err_code_t preset_make(walk_t *walk, const nn_item_t *item, int input,
                              tree_t **out, err_t *err)
{
    const nn_input_t *from = &walk->graph->inputs[input];
    const tree_t *options = item->options;
    const bool map = options != NULL && tree_kind(options) == TREE_MAP;
    opt_ints_t shape = {.count = from->ndim};
    char path[NN_PATH_TEXT + 64];
    nn_preset_use_t use = {.path = path, .input = &shape};
    tree_t *name = NULL;
    err_code_t rc;

    if (options == NULL ||
        (map ? tree_count(options) != 1 : tree_kind(options) != TREE_SCALAR))
        return nn_fail_at(item->place, err,
                          "a preset among the layers is one name, with its "
                          "options if it has some, such as {preset: {lenet: "
                          "{classes: 10}}}");
    for (int d = 0; d < from->ndim; d++)
        shape.items[d] = from->dims[d];
    name = map ? tree_new(TREE_SCALAR, tree_key(options, 0),
                          tree_key_place(options, 0))
               : tree_clone(options);
    snprintf(path, sizeof path, "%s.preset.%s", item->path, tree_text(name));
    use.name = name;
    use.options = map && tree_kind(tree_at(options, 0)) != TREE_NULL
                      ? tree_at(options, 0)
                      : NULL;
    rc = nn_preset_make(&use, out, err);
    if (rc == ERR_OK) {
        if (walk->out->made == NULL)
            walk->out->made = tree_new(TREE_LIST, NULL, item->place);
        tree_add(walk->out->made, *out);
    }
    tree_free(name);
    return rc;
}

/* Does layer [number] of a preset read the input? */
static bool reads_input(const nn_item_t *layer, size_t number)
{
    const char *from = layer->from == NULL ? NULL : tree_text(layer->from);

    if (layer->from == NULL)
        return number == 0;
    return from != NULL && strcmp(from, "input") == 0;
}

/* Append the layers of a preset. Its first layer reads the input. Its last
 * layer gets the preset's name, which is appended to the names of the other
 * layers. */
static err_code_t walk_preset(walk_t *walk, const nn_item_t *item, err_t *err)
{
    const char *name = item->name == NULL ? NULL : tree_text(item->name);
    tree_t *list = NULL;
    int input = 0;
    err_code_t rc = preset_input(walk, item, &input, err);

    if (rc == ERR_OK && (item->share != NULL || item->init != NULL))
        rc = nn_fail_at(item->place, err,
                        "a preset has a name and from, but no share or init");
    if (rc == ERR_OK && name != NULL &&
        strlen(walk->scope) + 1 + strlen(name) >= NN_SCOPE_TEXT)
        rc = nn_fail_at(tree_place(item->name), err,
                        "the name of a preset has at most %d letters here",
                        NN_SCOPE_TEXT - 2 - (int)strlen(walk->scope));
    if (rc == ERR_OK)
        rc = preset_make(walk, item, input, &list, err);
    for (size_t i = 0; rc == ERR_OK && i < tree_count(list); i++) {
        nn_item_t layer = {.start = walk->start};

        snprintf(layer.path, sizeof layer.path, "%s", item->path);
        snprintf(layer.scope, sizeof layer.scope, "%s%s%s", walk->scope,
                 name == NULL ? "" : "_", name == NULL ? "" : name);
        layer.scoped = (int)strlen(layer.scope);
        rc = item_read(tree_at(list, i), &layer_form, &layer, err);
        if (rc != ERR_OK)
            return rc;
        if (item->from != NULL && reads_input(&layer, i))
            layer.from = item->from;
        if (i + 1 == tree_count(list) && item->name != NULL) {
            layer.name = item->name;
            layer.scoped = (int)strlen(walk->scope);
        }
        rc = items_append(walk->out, &walk->room, &layer, err);
    }
    return rc;
}

static err_code_t walk_list(walk_t *walk, const tree_t *list, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (tree_kind(list) != TREE_LIST || tree_count(list) == 0)
        return nn_fail_at(tree_place(list), err,
                          "%s must be a list with at least one layer, one "
                          "dash each",
                          walk->path);
    for (size_t i = 0; i < tree_count(list) && rc == ERR_OK; i++) {
        nn_item_t item = {.start = walk->start};

        snprintf(item.path, sizeof item.path, "%s[%zu]", walk->path, i);
        snprintf(item.scope, sizeof item.scope, "%s", walk->scope);
        item.scoped = (int)strlen(item.scope);
        rc = item_read(tree_at(list, i), &layer_form, &item, err);
        if (rc == ERR_OK && strcmp(item.kind, "repeat") == 0)
            rc = walk_repeat(walk, &item, err);
        else if (rc == ERR_OK && strcmp(item.kind, "preset") == 0)
            rc = walk_preset(walk, &item, err);
        else if (rc == ERR_OK)
            rc = items_append(walk->out, &walk->room, &item, err);
    }
    return rc;
}

err_code_t nn_items_read(const nn_graph_t *graph, const tree_t *list,
                         nn_items_t *out, err_t *err)
{
    nn_items_t items = {0};
    walk_t walk = {.graph = graph,
                   .out = &items,
                   .path = "model.layers",
                   .scope = "",
                   .start = NN_INPUT};
    err_code_t rc = walk_list(&walk, list, err);

    if (rc == ERR_OK)
        *out = items;
    else
        nn_items_free(&items);
    return rc;
}

void nn_items_free(nn_items_t *items)
{
    mem_free(items->items);
    tree_free(items->made);
}
