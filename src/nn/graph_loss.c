/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a built graph tells about its losses: their targets, and what the sums
 * over them are divided by. The losses stand behind the layers. */
#include "nn/nn_priv.h"

int nn_graph_losses(const nn_graph_t *graph)
{
    return graph->loss_count;
}

static int64_t loss_elems(const nn_layer_t *loss)
{
    return loss->kind->classifier ? op_classes_of(&loss->config).rows
                                  : nn_sample_elems(&loss->config.in);
}

static int64_t loss_classes(const nn_layer_t *loss)
{
    return loss->kind->classifier ? op_classes_of(&loss->config).classes : 0;
}

static bool loss_weighs(const nn_layer_t *loss)
{
    return loss->kind->classifier &&
           (loss->config.loss.ignore || loss->class_weights != NULL);
}

nn_loss_info_t nn_graph_loss_info(const nn_graph_t *graph, int index)
{
    const nn_layer_t *loss = nn_loss_of(graph, index);
    const op_config_t *config = &loss->config;
    nn_loss_info_t info = {
        .name = loss->name,
        .kind = loss->kind->name,
        .place = loss->place,
        .weight = loss->weight,
        .target = loss->target,
        .elems = loss_elems(loss),
        .classes = loss_classes(loss),
        .class_axis = config->loss.axis == 0 ? 1 : config->loss.axis,
        .ignore = config->loss.ignore,
        .ignored = config->loss.ignored,
        .plain = loss->kind->classifier && loss->class_weights == NULL &&
                 config->loss.smoothing == 0,
        .weighs = loss_weighs(loss),
        .ndim = config->in.ndim - 1,
    };

    for (int i = 0; i < info.ndim; i++)
        info.dims[i] = config->in.dims[i + 1];
    return info;
}

int nn_graph_targets(const nn_graph_t *graph)
{
    return graph->target_count;
}

nn_target_info_t nn_graph_target_info(const nn_graph_t *graph, int index)
{
    const nn_target_t *target = &graph->targets[index];
    const nn_layer_t *loss = nn_loss_of(graph, target->loss);

    return (nn_target_info_t){
        .name = target->name,
        .loss = target->loss,
        .bytes = (size_t)loss_elems(loss) *
                 (loss->kind->classifier ? sizeof(int64_t) : sizeof(float))};
}

double nn_loss_denominator(const nn_graph_t *graph, int loss, int64_t samples)
{
    return (double)samples * (double)loss_elems(nn_loss_of(graph, loss));
}

bool nn_graph_weighs(const nn_graph_t *graph)
{
    bool any = false;

    for (int k = 0; k < graph->loss_count; k++)
        any = any || loss_weighs(nn_loss_of(graph, k));
    return any;
}

nn_weight_t nn_loss_weigh(const nn_graph_t *graph, int loss, const void *target,
                          int64_t samples)
{
    const nn_layer_t *layer = nn_loss_of(graph, loss);
    const op_loss_t *how = &layer->config.loss;
    const int64_t count = samples * loss_elems(layer);
    const int64_t classes = loss_classes(layer);
    const int64_t *labels = target;
    nn_weight_t weight = {.denominator = (double)count, .counted = count};

    if (!loss_weighs(layer))
        return weight;
    weight = (nn_weight_t){0};
    for (int64_t i = 0; i < count; i++) {
        /* What is no class is told by forward. */
        if ((how->ignore && labels[i] == how->ignored) || labels[i] < 0 ||
            labels[i] >= classes)
            continue;
        weight.counted++;
        weight.denominator +=
            how->weights == NULL ? 1 : (double)how->weights[labels[i]];
    }
    return weight;
}
