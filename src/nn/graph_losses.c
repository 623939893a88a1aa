/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From `loss` in the run file to the losses, which are stored after the layers,
 * and the targets that they read. Losses share a target if they give it one
 * name and read it in the same type and shape.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/nn_build.h"

/* The default name of a loss's target. */
#define TARGET_NAME "target"
#define WEIGHT_MAX 1e30
/* Maximum length of a name, which becomes part of the names of columns. */
#define NAME_MAX_LENGTH 40

/* Read the name at [node], which is [key] of a loss. A NULL node leaves [out]
 * as it is. */
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

/* Names of what a loss reads for a sample besides the output. */
typedef struct wanted {
    const char *target, *weights; /* NULL: the loss has no weights of samples */
} wanted_t;

static err_code_t loss_name(nn_graph_t *graph, int index, const nn_item_t *item,
                            wanted_t *wanted, err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    const char *name;
    err_code_t rc = name_read(item->target, "target", &wanted->target, err);

    name = wanted->target;
    if (rc == ERR_OK)
        rc = name_read(item->name, "name", &name, err);
    if (rc == ERR_OK)
        rc = name_read(item->sample_weight, "sample_weight", &wanted->weights,
                       err);
    if (rc != ERR_OK)
        return rc;
    layer->name = str_dup(name);
    for (int k = 0; k < index; k++)
        if (strcmp(nn_loss_of(graph, k)->name, name) == 0)
            return nn_fail_at(item->place, err,
                              "two losses are called '%s', this one and the "
                              "one at %s; give one of them another target, or "
                              "a name: {%s: , name: %s2}",
                              name, nn_loss_of(graph, k)->place, item->kind,
                              name);
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

/* Are [own] and [other], two targets with one name, of equal type and shape? */
static bool takes_alike(const nn_target_info_t *own,
                        const nn_target_info_t *other)
{
    return own->weights == other->weights && own->elems == other->elems &&
           own->classes == other->classes && own->ignore == other->ignore &&
           (!own->ignore || own->ignored == other->ignored);
}

/* Write to *out the number of the target [target] called [name]. If no earlier
 * loss reads the name in this type and shape, a new target is added. */
static err_code_t target_find(nn_graph_t *graph, nn_target_t target,
                              const char *name, int *out, err_t *err)
{
    const int count = graph->target_count;
    const nn_target_info_t own = nn_target_describe(graph, &target);

    for (*out = 0; *out < count; ++*out) {
        const nn_target_info_t other = nn_graph_target_info(graph, *out);

        if (strcmp(other.name, name) == 0 && takes_alike(&own, &other))
            return ERR_OK;
    }
    if (count == NN_FIELDS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s: the losses read more than %d targets, weights of "
                       "samples included; several losses may read one target",
                       nn_loss_of(graph, target.loss)->place, NN_FIELDS_MAX);
    target.name = str_dup(name);
    graph->targets[graph->target_count++] = target;
    return ERR_OK;
}

static err_code_t loss_targets(nn_graph_t *graph, int index,
                               const wanted_t *wanted, err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    int weights = -1;
    err_code_t rc = target_find(graph, (nn_target_t){.loss = index},
                                wanted->target, &layer->target, err);

    if (rc == ERR_OK && wanted->weights != NULL)
        rc = target_find(graph, (nn_target_t){.loss = index, .weights = true},
                         wanted->weights, &weights, err);
    layer->sample_weight = weights + 1;
    return rc;
}

static err_code_t loss_build(nn_graph_t *graph, int index,
                             const nn_item_t *item, err_t *err)
{
    nn_layer_t *layer = nn_loss_of(graph, index);
    wanted_t wanted = {.target = TARGET_NAME};
    char path[NN_PATH_TEXT + 64];
    err_code_t rc;

    rc = nn_kind_find(nn_loss_kinds(), "loss", item->kind, item->place,
                      &layer->kind, err);
    if (rc != ERR_OK)
        return rc;
    tree_place_format(item->place, layer->place, sizeof layer->place);
    graph->loss_count = index + 1;
    rc = loss_name(graph, index, item, &wanted, err);
    if (rc == ERR_OK)
        rc = loss_weight(layer, item, err);
    if (rc == ERR_OK)
        rc = nn_loss_resolve(graph, index, item, err);
    if (rc != ERR_OK)
        return rc;
    layer->owner = layer->last_user = graph->layer_count + index;
    layer->config.kind = layer->kind->op;
    layer->config.in = graph->layers[layer->from[0]].out;
    layer->config.training = true;
    layer->config.need_dx = true;
    layer->config.threads = 1;
    rc = nn_kind_configure(layer, item->options, item->place,
                           nn_kind_path(item, layer->kind, path), err);
    if (rc == ERR_OK)
        rc = nn_layer_infer(layer, err);
    return rc == ERR_OK ? loss_targets(graph, index, &wanted, err) : rc;
}

err_code_t nn_build_losses(nn_graph_t *graph, const tree_t *loss, err_t *err)
{
    nn_item_t items[NN_FIELDS_MAX];
    double weights = 0;
    int count = 0;
    err_code_t rc;

    if (loss == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no loss; add a line such as 'loss: "
                       "cross_entropy'");
    rc = nn_items_read_losses(loss, items, &count, err);
    for (int k = 0; k < count && rc == ERR_OK; k++) {
        rc = loss_build(graph, k, &items[k], err);
        weights += rc == ERR_OK ? nn_loss_of(graph, k)->weight : 0;
    }
    if (rc == ERR_OK && !(weights > 0))
        rc = nn_fail_at(tree_place(loss), err,
                        "the weight of every loss is 0, so there is nothing "
                        "to train for; give one of them another");
    return rc == ERR_OK ? nn_graph_check_used(graph, err) : rc;
}
