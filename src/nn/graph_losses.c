/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From `loss` in the run file to the losses behind the layers, and the targets
 * that they read. Losses may read one target together, if they take it alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/nn_build.h"

/* The name of a loss's target where none is written. */
#define TARGET_NAME "target"
#define WEIGHT_MAX 1e30
/* It becomes part of the names of columns. */
#define NAME_MAX_LENGTH 40

/* What is written at [node], below the [key] of a loss, as a name. */
static err_code_t name_read(const tree_t *node, const char *key,
                            const char **out, err_t *err)
{
    if (node == NULL)
        return ERR_OK;
    if (tree_text(node) == NULL || !nn_name_is_valid(tree_text(node)) ||
        strlen(tree_text(node)) > NAME_MAX_LENGTH)
        return nn_fail_at(tree_place(node), err,
                          "the %s of a loss is made of up to %d letters, "
                          "digits, _ and -, but this is '%s'",
                          key, NAME_MAX_LENGTH,
                          tree_text(node) == NULL ? "" : tree_text(node));
    *out = tree_text(node);
    return ERR_OK;
}

static err_code_t loss_name(nn_graph_t *graph, int index, const nn_item_t *item,
                            err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    const char *target = TARGET_NAME, *name;
    err_code_t code = name_read(item->target, "target", &target, err);

    name = target;
    if (code == ERR_OK)
        code = name_read(item->name, "name", &name, err);
    if (code != ERR_OK)
        return code;
    layer->name = str_dup(name);
    for (int k = 0; k < index; k++)
        if (strcmp(nn_loss_of(graph, k)->name, name) == 0)
            return nn_fail_at(item->place, err,
                              "two losses are called '%s', this one and the "
                              "one at %s; give one of them another target, or "
                              "a name: {%s: , name: %s2}",
                              name, nn_loss_of(graph, k)->place, item->kind,
                              name);
    for (layer->target = 0; layer->target < graph->target_count;
         layer->target++)
        if (strcmp(graph->targets[layer->target].name, target) == 0)
            return ERR_OK;
    graph->targets[graph->target_count++] =
        (nn_target_t){.name = str_dup(target), .loss = index};
    return ERR_OK;
}

static err_code_t loss_weight(nn_layer_t *layer, const nn_item_t *item,
                              err_t *err)
{
    const char *text = item->weight == NULL ? "1" : tree_text(item->weight);

    if (text != NULL && str_to_real(text, &layer->weight) &&
        layer->weight >= 0 && layer->weight <= WEIGHT_MAX)
        return ERR_OK;
    return nn_fail_at(tree_place(item->weight), err,
                      "loss %s: weight is a number from 0 to 1e30, but this is "
                      "'%s'",
                      layer->name, text == NULL ? "" : text);
}

/* The first loss that reads the same target says what it holds. */
static err_code_t loss_agrees(const nn_graph_t *graph, int index, err_t *err)
{
    const nn_loss_info_t own = nn_graph_loss_info(graph, index);
    const int other = graph->targets[own.target].loss;
    const nn_loss_info_t first = nn_graph_loss_info(graph, other);
    const char *name = graph->targets[own.target].name;

    if ((own.classes > 0) != (first.classes > 0))
        return err_set(err, ERR_CONFIG,
                       "%s: loss %s (%s) takes the target %s as %s, but loss "
                       "%s (%s) at %s takes it as %s; read the data twice, "
                       "under two names in data.target",
                       own.place, own.name, own.kind, name,
                       own.classes > 0 ? "class numbers" : "real numbers",
                       first.name, first.kind, first.place,
                       first.classes > 0 ? "class numbers" : "real numbers");
    if (own.elems != first.elems || own.classes != first.classes)
        return err_set(err, ERR_CONFIG,
                       "%s: loss %s (%s) takes %lld values of the target %s "
                       "(%lld classes), but loss %s (%s) at %s takes %lld "
                       "(%lld classes); both must read outputs of one shape",
                       own.place, own.name, own.kind, (long long)own.elems,
                       name, (long long)own.classes, first.name, first.kind,
                       first.place, (long long)first.elems,
                       (long long)first.classes);
    if (own.ignore != first.ignore ||
        (own.ignore && own.ignored != first.ignored))
        return err_set(
            err, ERR_CONFIG,
            "%s: loss %s (%s) and loss %s at %s read one target, %s, "
            "and need the same ignore_index",
            own.place, own.name, own.kind, first.name, first.place, name);
    return ERR_OK;
}

static err_code_t loss_build(nn_graph_t *graph, int index,
                             const nn_item_t *item, err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    char path[NN_PATH_TEXT + 64];
    err_code_t code;

    code = nn_kind_find(nn_loss_kinds(), "loss", item->kind, item->place,
                        &layer->kind, err);
    if (code != ERR_OK)
        return code;
    tree_place_format(item->place, layer->place, sizeof layer->place);
    graph->loss_count = index + 1;
    code = loss_name(graph, index, item, err);
    if (code == ERR_OK)
        code = loss_weight(layer, item, err);
    if (code == ERR_OK)
        code = nn_loss_resolve(graph, index, item, err);
    if (code != ERR_OK)
        return code;
    layer->owner = layer->last_user = graph->layer_count + index;
    layer->config.kind = layer->kind->op;
    layer->config.in = graph->layers[layer->from[0]].out;
    layer->config.training = true;
    layer->config.need_dx = true;
    layer->config.threads = 1;
    code = nn_kind_configure(layer, item->options, item->place,
                             nn_kind_path(item, layer->kind, path), err);
    if (code == ERR_OK)
        code = nn_layer_infer(layer, err);
    return code == ERR_OK ? loss_agrees(graph, index, err) : code;
}

err_code_t nn_build_losses(nn_graph_t *graph, const tree_t *loss, err_t *err)
{
    nn_item_t items[NN_FIELDS_MAX];
    double weights = 0;
    int count = 0;
    err_code_t code;

    if (loss == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no loss; add a line such as 'loss: "
                       "cross_entropy'");
    code = nn_items_read_losses(loss, items, &count, err);
    for (int k = 0; k < count && code == ERR_OK; k++) {
        code = loss_build(graph, k, &items[k], err);
        weights += code == ERR_OK ? nn_loss_of(graph, k)->weight : 0;
    }
    if (code == ERR_OK && !(weights > 0))
        code = nn_fail_at(tree_place(loss), err,
                          "the weight of every loss is 0, so there is nothing "
                          "to train for; give one of them another");
    return code == ERR_OK ? nn_graph_check_used(graph, err) : code;
}
