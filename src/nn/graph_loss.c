/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Queries on the losses of a built graph: their targets, and the denominators
 * of their sums. In graph->layers the losses come after the layers. */
#include "nn/nn_priv.h"

int nn_graph_losses(const nn_graph_t *graph)
{
    return graph->loss_count;
}

/* Are targets probabilities of the classes? */
static bool loss_soft(const nn_layer_t *loss)
{
    return loss->config.kind == OP_CROSS_ENTROPY_SOFT;
}

/* Terms of the loss per sample: positions of a classifier, otherwise
 * elements. */
static int64_t loss_terms(const nn_layer_t *loss)
{
    return loss->kind->classifier ? op_classes_of(&loss->config).rows
                                  : nn_sample_elems(&loss->config.in);
}

static int64_t loss_elems(const nn_layer_t *loss)
{
    return loss_soft(loss) ? nn_sample_elems(&loss->config.in)
                           : loss_terms(loss);
}

static int64_t loss_classes(const nn_layer_t *loss)
{
    return loss->kind->classifier ? op_classes_of(&loss->config).classes : 0;
}

/* Does the denominator depend on the values of the targets? */
static bool targets_weigh(const nn_layer_t *loss)
{
    return loss->kind->classifier && !loss_soft(loss) &&
           (loss->config.loss.ignore || loss->class_weights != NULL);
}

static bool loss_weighs(const nn_layer_t *loss)
{
    return targets_weigh(loss) || loss->sample_weight > 0;
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
        .terms = loss_terms(loss),
        .classes = loss_classes(loss),
        .soft = loss_soft(loss),
        .class_axis = config->loss.axis == 0 ? 1 : config->loss.axis,
        .ignore = config->loss.ignore,
        .ignored = config->loss.ignored,
        .plain = loss->kind->classifier && loss->class_weights == NULL &&
                 config->loss.smoothing == 0 && loss->sample_weight == 0,
        .sample_weight = loss->sample_weight - 1,
        .weighs = loss_weighs(loss),
        .shares =
            loss_soft(loss) || (config->kind == OP_KL && config->alpha == 0),
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

nn_target_info_t nn_target_describe(const nn_graph_t *graph,
                                    const nn_target_t *target)
{
    const nn_layer_t *loss = nn_loss_of(graph, target->loss);
    nn_target_info_t info = {.name = target->name,
                             .loss = target->loss,
                             .weights = target->weights,
                             .elems = 1,
                             .bytes = sizeof(float)};

    if (target->weights)
        return info;
    info.elems = loss_elems(loss);
    info.classes = loss_soft(loss) ? 0 : loss_classes(loss);
    info.ignore = loss->config.loss.ignore;
    info.ignored = loss->config.loss.ignored;
    info.bytes = (size_t)info.elems *
                 (info.classes > 0 ? sizeof(int64_t) : sizeof(float));
    return info;
}

nn_target_info_t nn_graph_target_info(const nn_graph_t *graph, int index)
{
    return nn_target_describe(graph, &graph->targets[index]);
}

double nn_loss_denominator(const nn_graph_t *graph, int loss, int64_t samples)
{
    return (double)samples * (double)loss_terms(nn_loss_of(graph, loss));
}

bool nn_graph_weighs(const nn_graph_t *graph)
{
    bool any = false;

    for (int k = 0; k < graph->loss_count; k++)
        any = any || loss_weighs(nn_loss_of(graph, k));
    return any;
}

/* Add the weights of [count] targets of a sample, whose own weight is [sample].
 * A target that is no class is skipped here, as forward reports it. */
static void sample_weigh(const nn_layer_t *layer, const int64_t *labels,
                         int64_t count, double sample, nn_weight_t *weight)
{
    const op_loss_t *how = &layer->config.loss;
    const int64_t classes = loss_classes(layer);

    for (int64_t i = 0; i < count; i++) {
        if ((how->ignore && labels[i] == how->ignored) || labels[i] < 0 ||
            labels[i] >= classes)
            continue;
        weight->counted++;
        weight->denominator +=
            sample *
            (how->weights == NULL ? 1 : (double)how->weights[labels[i]]);
    }
}

/* The weight of the targets of [samples]. [weights]: one for each sample; NULL:
 * all are 1. */
static nn_weight_t weigh(const nn_layer_t *layer, const void *target,
                         const float *weights, int64_t samples)
{
    const int64_t terms = loss_terms(layer), count = samples * terms;
    const int64_t *labels = target;
    nn_weight_t weight = {.denominator = (double)count, .counted = count};

    if (!targets_weigh(layer) && weights == NULL)
        return weight;
    weight = (nn_weight_t){0};
    for (int64_t n = 0; n < samples; n++) {
        const double sample = weights == NULL ? 1 : (double)weights[n];

        if (targets_weigh(layer)) {
            sample_weigh(layer, labels + n * terms, terms, sample, &weight);
            continue;
        }
        weight.counted += terms;
        weight.denominator += sample * (double)terms;
    }
    return weight;
}

nn_weight_t nn_loss_weigh(const nn_graph_t *graph, int loss, const void *target,
                          int64_t samples)
{
    return weigh(nn_loss_of(graph, loss), target, NULL, samples);
}

nn_weight_t nn_batch_weigh(const nn_graph_t *graph, int loss,
                           const nn_batch_t *batch, int64_t samples)
{
    const nn_layer_t *layer = nn_loss_of(graph, loss);
    const void *weights = layer->sample_weight > 0
                              ? batch->targets[layer->sample_weight - 1]
                              : NULL;

    return weigh(layer, batch->targets[layer->target], weights, samples);
}
