/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Names of layers, and the references to them: `from` and `share`. All layers
 * are named before any reference is resolved, so that an error message can tell
 * a name that comes too late from one that does not exist.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/nn_build.h"

#define NN_UNKNOWN INT_MIN

/* ---- names --------------------------------------------------------------- */

/* The number of [layer] among the layers of its kind, from 1. */
static int kind_number(const nn_graph_t *graph, const nn_layer_t *layer)
{
    int number = 1;

    for (const nn_layer_t *other = graph->layers; other < layer; other++)
        number += other->kind == layer->kind;
    return number;
}

/* The input called [name]. An only input is also called `input`, whatever its
 * name. NN_UNKNOWN: there is none. */
static int find_input(const nn_graph_t *graph, const char *name)
{
    if (graph->input_count == 1 && strcmp(name, "input") == 0)
        return NN_INPUT;
    for (int k = 0; k < graph->input_count; k++)
        if (strcmp(graph->inputs[k].name, name) == 0)
            return NN_INPUT - k;
    return NN_UNKNOWN;
}

/* Names become parts of paths in checkpoint files and of dotted names. */
bool nn_name_is_valid(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return false;
    return name[0] != '\0';
}

static bool name_is_free(const nn_graph_t *graph, const char *name)
{
    if (strcmp(name, "input") == 0 || strcmp(name, "entry") == 0)
        return false;
    return find_input(graph, name) == NN_UNKNOWN;
}

err_code_t nn_layer_name(nn_graph_t *graph, int index, const nn_item_t *item,
                         err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    const char *name = item->name == NULL ? NULL : tree_text(item->name);
    tree_place_t place =
        item->name == NULL ? item->place : tree_place(item->name);

    if (item->name != NULL &&
        (name == NULL || !nn_name_is_valid(name) || !name_is_free(graph, name)))
        return nn_fail_at(place, err,
                          "a layer's name is made of letters, digits, _ and - "
                          "(and is not 'input', 'entry' or that of an input), "
                          "but this is '%s'",
                          name == NULL ? "" : name);
    layer->name =
        name != NULL
            ? str_printf("%s%.*s", name, item->scoped, item->scope)
            : str_printf("%s%d", layer->kind->name, kind_number(graph, layer));
    if (find_input(graph, layer->name) != NN_UNKNOWN)
        return nn_fail_at(place, err,
                          "a layer and an input are both called '%s'; give "
                          "one of them another name",
                          layer->name);
    for (const nn_layer_t *other = graph->layers; other < layer; other++)
        if (strcmp(other->name, layer->name) == 0)
            return nn_fail_at(
                place, err,
                "two layers are called '%s', this one and the one "
                "at %s; give one of them another name",
                layer->name, other->place);
    return ERR_OK;
}

/* ---- references ---------------------------------------------------------- */

static int find_exact(const nn_graph_t *graph, const char *name)
{
    for (int i = 0; i < graph->layer_count; i++)
        if (strcmp(graph->layers[i].name, name) == 0)
            return i;
    return NN_UNKNOWN;
}

/* The layer that [name] refers to at [item]: first one of the same iteration of
 * a repeat is searched, then of the iterations around it, then of the whole
 * model. */
static int find_layer(const nn_graph_t *graph, const nn_item_t *item,
                      const char *name)
{
    char scope[NN_SCOPE_TEXT];
    char *full, *end;
    int found;

    memcpy(scope, item->scope, sizeof scope);
    do {
        full = str_printf("%s%s", name, scope);
        found = find_exact(graph, full);
        free(full);
        end = strrchr(scope, '_');
        if (end == NULL)
            return found;
        *end = '\0';
    } while (found == NN_UNKNOWN);
    return found;
}

static const char *what_is(const nn_graph_t *graph, int index)
{
    return index < graph->layer_count ? "layer" : "loss";
}

/* Check the input [from] that layer [index] takes by default. A default can be
 * a graph input only if the graph has one input. */
static err_code_t check_start(const nn_graph_t *graph, int index, int from,
                              tree_place_t place, err_t *err)
{
    if (!nn_is_input(from) || graph->input_count == 1)
        return ERR_OK;
    return nn_fail_at(place, err,
                      "layer %s (%s) is the first, but the model has %d "
                      "inputs; say which one it takes, as in {%s: , from: %s}",
                      graph->layers[index].name,
                      graph->layers[index].kind->name, graph->input_count,
                      graph->layers[index].kind->name, graph->inputs[0].name);
}

/* A name in `from` or `share`. */
typedef struct reference {
    const nn_graph_t *graph;
    int index;             /* of the layer or loss that has the key */
    const nn_item_t *item; /* this layer or loss as written */
    const char *key;       /* "from" or "share" */
    const tree_t *node;    /* where the name is written */
} reference_t;

/* Report a [name] that no layer has. */
static err_code_t fail_unknown(const reference_t *reference, const char *name,
                               err_t *err)
{
    const nn_graph_t *graph = reference->graph;
    const int index = reference->index;
    const int known = index < graph->layer_count ? index : graph->layer_count;
    const char *nearest, **names = NULL;
    err_code_t rc;

    rc = mem_new(const char *, (size_t)known + NN_FIELDS_MAX + 1, "names",
                 &names, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < known; i++)
        names[i] = graph->layers[i].name;
    for (int k = 0; k < graph->input_count; k++)
        names[known + k] = graph->inputs[k].name;
    nearest = str_nearest(name, names);
    mem_free(names);
    if (nearest != NULL)
        rc = nn_fail_at(tree_place(reference->node), err,
                        "%s %s: %s names '%s', but no layer is called so; "
                        "did you mean '%s'?",
                        what_is(graph, index), graph->layers[index].name,
                        reference->key, name, nearest);
    else
        rc = nn_fail_at(tree_place(reference->node), err,
                        "%s %s: %s names '%s', but no layer is called so; "
                        "give that layer a name: {name: %s, relu: }",
                        what_is(graph, index), graph->layers[index].name,
                        reference->key, name, name);
    return rc;
}

/* Set *out to the layer or input that [reference] names. */
static err_code_t reference_resolve(const reference_t *reference, int *out,
                                    err_t *err)
{
    const nn_graph_t *graph = reference->graph;
    const int index = reference->index;
    const nn_item_t *item = reference->item;
    const char *key = reference->key;
    const tree_t *node = reference->node;
    const char *name = tree_text(node);
    const nn_layer_t *layer = &graph->layers[index];
    int found;

    if (name == NULL)
        return nn_fail_at(tree_place(node), err,
                          "%s %s: %s takes names of earlier layers",
                          what_is(graph, index), layer->name, key);
    found = find_input(graph, name);
    if (found != NN_UNKNOWN) {
        *out = found;
        return ERR_OK;
    }
    if (strcmp(name, "entry") == 0) {
        if (item->scope[0] == '\0')
            return nn_fail_at(tree_place(node), err,
                              "%s %s: 'entry' is what an iteration starts "
                              "from, so it has a meaning inside of a repeat "
                              "only",
                              what_is(graph, index), layer->name);
        *out = item->start;
        return check_start(graph, index, *out, tree_place(node), err);
    }
    found = find_layer(graph, item, name);
    if (found == NN_UNKNOWN)
        return fail_unknown(reference, name, err);
    if (found >= index)
        return nn_fail_at(tree_place(node), err,
                          "%s %s: %s names '%s', %s; a layer takes earlier "
                          "ones only, as a cycle could not be computed: put "
                          "it after the layers that it reads",
                          what_is(graph, index), layer->name, key, name,
                          found == index ? "which is the layer itself"
                                         : "which comes after it");
    *out = found;
    return ERR_OK;
}

static err_code_t resolve_from(nn_graph_t *graph, int index,
                               const nn_item_t *item, err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    const bool list = item->from != NULL && tree_kind(item->from) == TREE_LIST;
    const size_t count = list ? tree_count(item->from) : 1;
    const int least = layer->kind->several ? 2 : 1;
    const int most = layer->kind->several    ? OP_INPUTS_MAX
                     : layer->kind->most > 0 ? layer->kind->most
                                             : 1;
    tree_place_t place =
        item->from == NULL ? item->place : tree_place(item->from);
    err_code_t rc = ERR_OK;

    if (count < (size_t)least && layer->kind->several)
        return nn_fail_at(place, err,
                          "layer %s (%s) takes 2 to %d inputs; name them as in "
                          "{%s: , from: [a, b]}",
                          layer->name, layer->kind->name, OP_INPUTS_MAX,
                          layer->kind->name);
    if (count < (size_t)least || count > (size_t)most)
        return nn_fail_at(place, err,
                          "layer %s (%s) takes %s%d input%s, but from names "
                          "%zu",
                          layer->name, layer->kind->name,
                          least > 1  ? "2 to "
                          : most > 1 ? "1 to "
                                     : "",
                          most, most > 1 ? "s" : "", count);
    layer->inputs = (int)count;
    layer->from[0] = index - 1; /* NN_INPUT for the first layer */
    if (item->from == NULL)
        rc = check_start(graph, index, index - 1, place, err);
    for (size_t k = 0; k < count && item->from != NULL && rc == ERR_OK; k++)
        rc = reference_resolve(
            &(reference_t){graph, index, item, "from",
                           list ? tree_at(item->from, k) : item->from},
            &layer->from[k], err);
    return rc;
}

static err_code_t resolve_share(nn_graph_t *graph, int index,
                                const nn_item_t *item, err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    const nn_kind_t *shares_with = layer->kind->shares_with;
    const nn_layer_t *other;
    int found = index;
    err_code_t rc;

    layer->owner = index;
    layer->last_user = index;
    if (item->share == NULL)
        return ERR_OK;
    rc = reference_resolve(
        &(reference_t){graph, index, item, "share", item->share}, &found, err);
    if (rc != ERR_OK)
        return rc;
    other = nn_is_input(found) ? NULL : &graph->layers[found];
    if (other == NULL ||
        (other->kind != layer->kind && other->kind != shares_with))
        return nn_fail_at(tree_place(item->share), err,
                          "layer %s (%s) cannot share the parameters of %s "
                          "(%s); both must be of one kind%s%s%s",
                          layer->name, layer->kind->name,
                          tree_text(item->share),
                          other == NULL ? "no layer" : other->kind->name,
                          shares_with == NULL ? "" : " (or the other an ",
                          shares_with == NULL ? "" : shares_with->name,
                          shares_with == NULL ? "" : ")");
    if (layer->kind->params[0].name == NULL || layer->kind->moments)
        return nn_fail_at(tree_place(item->share), err,
                          "layer %s: a %s %s; leave out share", layer->name,
                          layer->kind->name,
                          layer->kind->moments
                              ? "has running statistics of its own input and "
                                "cannot be shared"
                              : "has no parameters to share");
    layer->owner = other->owner;
    graph->layers[layer->owner].last_user = index;
    return ERR_OK;
}

err_code_t nn_layer_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                            err_t *err)
{
    err_code_t rc = resolve_from(graph, index, item, err);

    return rc == ERR_OK ? resolve_share(graph, index, item, err) : rc;
}

err_code_t nn_loss_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                           err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    const tree_t *from = item->from;
    err_code_t rc = ERR_OK;

    layer->inputs = 1;
    layer->from[0] = graph->layer_count - 1;
    if (from != NULL && tree_kind(from) == TREE_LIST && tree_count(from) == 1)
        from = tree_at(from, 0);
    if (from != NULL)
        rc = reference_resolve(&(reference_t){graph, graph->layer_count + index,
                                              item, "from", from},
                               &layer->from[0], err);
    if (rc == ERR_OK && nn_is_input(layer->from[0]))
        return nn_fail_at(tree_place(from), err,
                          "loss %s: from names the input '%s', but a loss "
                          "takes what a layer gives",
                          layer->name, tree_text(from));
    return rc;
}

/* Does any layer or loss read the output of layer [index], or graph input
 * [index]? */
static bool is_read(const nn_graph_t *graph, int index)
{
    const int first = nn_is_input(index) ? 0 : index + 1;

    for (int i = first; i < graph->layer_count + graph->loss_count; i++)
        for (int k = 0; k < graph->layers[i].inputs; k++)
            if (graph->layers[i].from[k] == index)
                return true;
    return false;
}

err_code_t nn_graph_check_used(const nn_graph_t *graph, err_t *err)
{
    for (int k = 0; k < graph->input_count && graph->input_count > 1; k++)
        if (!is_read(graph, NN_INPUT - k))
            return err_set(err, ERR_CONFIG,
                           "%s: nothing uses the input %s; name it in the from "
                           "of a layer, or take it out of model.input and "
                           "data.input",
                           graph->inputs[k].place, graph->inputs[k].name);
    for (int i = 0; i < graph->layer_count; i++)
        if (!is_read(graph, i))
            return err_set(err, ERR_CONFIG,
                           "%s: nothing uses the output of layer %s (%s); name "
                           "it in the from of a later layer%s, or take it out",
                           graph->layers[i].place, graph->layers[i].name,
                           graph->layers[i].kind->name,
                           graph->loss_count > 1 ? " or of a loss" : "");
    return ERR_OK;
}
