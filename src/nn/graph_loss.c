/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a built graph tells about its loss: its targets, and what the sum over
 * them is divided by. The loss stands behind the layers. */
#include "nn/nn_priv.h"

static const nn_layer_t *graph_loss(const nn_graph_t *graph)
{
    return &graph->layers[graph->layer_count];
}

const char *nn_graph_loss(const nn_graph_t *graph)
{
    return graph_loss(graph)->kind->name;
}

int64_t nn_graph_classes(const nn_graph_t *graph)
{
    const nn_layer_t *loss = graph_loss(graph);

    return loss->kind->classifier ? op_classes_of(&loss->config).classes : 0;
}

int nn_graph_class_axis(const nn_graph_t *graph)
{
    const op_config_t *config = &graph_loss(graph)->config;

    return config->loss.axis == 0 ? 1 : config->loss.axis;
}

bool nn_graph_ignored(const nn_graph_t *graph, int64_t *out)
{
    const op_loss_t *loss = &graph_loss(graph)->config.loss;

    *out = loss->ignored;
    return loss->ignore;
}

bool nn_graph_loss_plain(const nn_graph_t *graph)
{
    const nn_layer_t *loss = graph_loss(graph);

    return loss->kind->classifier && loss->class_weights == NULL &&
           loss->config.loss.smoothing == 0;
}

int64_t nn_graph_target_elems(const nn_graph_t *graph)
{
    const nn_layer_t *loss = graph_loss(graph);

    return loss->kind->classifier ? op_classes_of(&loss->config).rows
                                  : nn_sample_elems(&loss->config.in);
}

double nn_graph_denominator(const nn_graph_t *graph, int64_t samples)
{
    return (double)samples * (double)nn_graph_target_elems(graph);
}

bool nn_graph_weighs(const nn_graph_t *graph)
{
    const nn_layer_t *loss = graph_loss(graph);

    return loss->config.loss.ignore || loss->class_weights != NULL;
}

nn_weight_t nn_graph_weigh(const nn_graph_t *graph, const void *target,
                           int64_t samples)
{
    const op_loss_t *loss = &graph_loss(graph)->config.loss;
    const int64_t count = samples * nn_graph_target_elems(graph);
    const int64_t classes = nn_graph_classes(graph);
    const int64_t *labels = target;
    nn_weight_t weight = {.denominator = (double)count, .counted = count};

    if (!nn_graph_weighs(graph))
        return weight;
    weight = (nn_weight_t){0};
    for (int64_t i = 0; i < count; i++) {
        /* What is no class is told by forward. */
        if ((loss->ignore && labels[i] == loss->ignored) || labels[i] < 0 ||
            labels[i] >= classes)
            continue;
        weight.counted++;
        weight.denominator +=
            loss->weights == NULL ? 1 : (double)loss->weights[labels[i]];
    }
    return weight;
}
