/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The parameter, buffer and moment arenas: the offset and the initial values of
 * each tensor, and how the moments of a step update the running statistics.
 *
 * Parameters are in reverse order of use: last layer first, and within a layer
 * the last parameter first. Backward finishes their gradients in this order. If
 * several layers share a parameter, the first of these layers, its owner, is
 * the last to add to the gradient and so finishes it. Buffers and moments are
 * in order of use.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "nn/nn_build.h"

/* Maximum elements of a layer's parameters (4 TiB). More is a typing error. */
#define PARAM_LIMIT ((size_t)1 << 40)

static size_t align_elems(size_t elems)
{
    return (elems + NN_TENSOR_ALIGN - 1) / NN_TENSOR_ALIGN * NN_TENSOR_ALIGN;
}

/* Append the tensor [slot] of shape [desc] of layer [index] to [table]; returns
 * its index in the table. */
static int table_add(nn_table_t *table, const nn_layer_t *layer, int index,
                     const nn_slot_t *slot, const op_desc_t *desc)
{
    nn_tensor_t *tensor = &table->tensors[table->count];
    nn_param_t *public = &tensor->public;

    public->name = str_printf("%s.%s", layer->name, slot->name);
    public->layer = index;
    public->ndim = desc->ndim;
    public->offset = table->elems;
    public->count = 1;
    for (int i = 0; i < desc->ndim; i++) {
        public->dims[i] = desc->dims[i];
        public->count *= (size_t)desc->dims[i];
    }
    tensor->fill = slot->fill;
    check(slot->name != NULL && desc->ndim >= 1 && desc->ndim <= OP_DIMS_MAX &&
              public->count > 0,
          "tensor %d of layer %s has %d dimensions and %zu elements",
          table->count, layer->name, desc->ndim, public->count);
    table->elems += align_elems(public->count);
    return table->count++;
}

/* Write all dimensions, such as "[16, 8, 3, 3]", to [out]. Returns [out]. */
static char *param_format(const op_desc_t *desc, char out[NN_SHAPE_TEXT])
{
    op_desc_t sample = {.ndim = desc->ndim + 1};

    for (int i = 0; i < desc->ndim; i++)
        sample.dims[i + 1] = desc->dims[i];
    return nn_shape_format(&sample, out);
}

/* Check that the parameters [descs] of [layer] have the shapes of the
 * owner's. */
static err_code_t layer_share_params(nn_graph_t *graph, nn_layer_t *layer,
                                     const op_desc_t *descs, err_t *err)
{
    const nn_layer_t *owner = &graph->layers[layer->owner];
    op_desc_t owned[OP_PARAMS_MAX];
    char mine[NN_SHAPE_TEXT], theirs[NN_SHAPE_TEXT];
    int count = 0;
    err_code_t rc = op_params(&owner->config, owned, &count, err);

    if (rc != ERR_OK)
        return rc;
    if (count != layer->param_count)
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s has %d parameters and cannot share the "
                       "%d of layer %s",
                       layer->place, layer->name, layer->param_count, count,
                       owner->name);
    for (int i = 0; i < count; i++) {
        bool same = descs[i].ndim == owned[i].ndim;

        for (int d = 0; d < descs[i].ndim && same; d++)
            same = descs[i].dims[d] == owned[i].dims[d];
        if (!same)
            return err_set(err, ERR_CONFIG,
                           "%s: layer %s needs a %s of shape %s and cannot "
                           "share that of layer %s, which is %s",
                           layer->place, layer->name,
                           layer->kind->params[i].name,
                           param_format(&descs[i], mine), owner->name,
                           param_format(&owned[i], theirs));
    }
    return ERR_OK;
}

/* Add a layer's parameters, the last one first. A layer that shares uses those
 * of its owner. */
static err_code_t layer_add_params(nn_graph_t *graph, int index, err_t *err)
{
    nn_layer_t *layer = &graph->layers[index];
    op_desc_t descs[OP_PARAMS_MAX];
    double fan_in = 1;
    err_code_t rc;

    rc = op_params(&layer->config, descs, &layer->param_count, err);
    if (rc != ERR_OK) {
        err_prefix(err, "%s: layer %s", layer->place, layer->name);
        return rc;
    }
    if (layer->owner != index)
        return layer_share_params(graph, layer, descs, err);
    /* The first parameter is the weight, [out, in...]. */
    if (layer->param_count > 0)
        fan_in = (double)nn_sample_elems(&descs[0]);
    for (int i = layer->param_count - 1; i >= 0 && rc == ERR_OK; i--) {
        const nn_slot_t *slot = &layer->kind->params[i];
        int at = table_add(&graph->params, layer, index, slot, &descs[i]);

        graph->params.tensors[at].bound =
            slot->fill == NN_FILL_NORMAL ? 1
            : slot->fill == NN_FILL_OUT  ? 1 / sqrt((double)layer->config.out)
                                         : 1 / sqrt(fan_in);
        rc = nn_init_tensor(layer, slot, &graph->params.tensors[at], err);
        layer->params[i] = at;
        layer->param_elems += graph->params.tensors[at].public.count;
    }
    if (rc != ERR_OK)
        return rc;
    if (layer->param_elems > PARAM_LIMIT)
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s has %zu parameters, more than 2^40",
                       layer->place, layer->name, layer->param_elems);
    return ERR_OK;
}

/* Add a layer's buffers, of shape [channels], and its moments, of shape [2 *
 * channels]. */
static void layer_add_buffers(nn_graph_t *graph, int index)
{
    nn_layer_t *layer = &graph->layers[index];
    const int64_t channels = layer->config.in.dims[1];
    const op_desc_t desc = {.ndim = 1, .dims = {channels}};

    for (int i = 0; i < NN_BUFFERS_MAX; i++)
        if (layer->kind->buffers[i].name != NULL)
            layer->buffers[i] = table_add(&graph->buffers, layer, index,
                                          &layer->kind->buffers[i], &desc);
    layer->moments = graph->moments;
    if (nn_layer_has_moments(layer))
        graph->moments += 2 * (size_t)channels;
}

/* Check that the tensors follow each other without overlap up to the table's
 * end, in rising ([step] 1) or falling ([step] -1) order of layers. */
static void table_check(const nn_table_t *table, int step)
{
    size_t end = 0;
    int layer = 0;

    for (int i = 0; CHECK_ON && i < table->count; i++) {
        const nn_param_t *tensor = &table->tensors[i].public;

        check(tensor->offset == end && end % NN_TENSOR_ALIGN == 0,
              "%s is at %zu, but the tensor before it ends at %zu",
              tensor->name, tensor->offset, end);
        check(i == 0 || step * (tensor->layer - layer) >= 0,
              "%s of layer %d comes after a tensor of layer %d", tensor->name,
              tensor->layer, layer);
        layer = tensor->layer;
        end = align_elems(tensor->offset + tensor->count);
    }
    check(end == table->elems, "%zu elements in an arena of %zu", end,
          table->elems);
}

static err_code_t table_open(nn_table_t *table, int room, err_t *err)
{
    return mem_new(nn_tensor_t, (size_t)room, "the parameter table",
                   &table->tensors, err);
}

err_code_t nn_build_tables(nn_graph_t *graph, err_t *err)
{
    const int layers = graph->layer_count;
    err_code_t rc;

    rc = table_open(&graph->params, layers * OP_PARAMS_MAX, err);
    if (rc == ERR_OK)
        rc = table_open(&graph->buffers, layers * NN_BUFFERS_MAX, err);
    for (int i = layers - 1; i >= 0 && rc == ERR_OK; i--)
        rc = layer_add_params(graph, i, err);
    for (int i = 0; i < layers && rc == ERR_OK; i++) {
        nn_layer_t *layer = &graph->layers[i];

        memcpy(layer->params, graph->layers[layer->owner].params,
               sizeof layer->params);
        layer->back = layer->param_count > 0;
        for (int k = 0; k < layer->inputs; k++)
            layer->back = layer->back || (!nn_is_input(layer->from[k]) &&
                                          graph->layers[layer->from[k]].back);
        layer_add_buffers(graph, i);
    }
    if (rc == ERR_OK) {
        check(graph->params.count <= layers * OP_PARAMS_MAX,
              "%d parameters of %d layers", graph->params.count, layers);
        table_check(&graph->params, -1);
        table_check(&graph->buffers, 1);
    }
    if (rc == ERR_OK && graph->params.count == 0)
        rc = err_set(err, ERR_CONFIG,
                     "%s: the model has nothing to train, as no layer has "
                     "parameters; add one such as {linear: {out: 10}}",
                     graph->layers[layers - 1].place);
    return rc;
}

int nn_graph_params(const nn_graph_t *graph)
{
    return graph->params.count;
}

const nn_param_t *nn_graph_param(const nn_graph_t *graph, int index)
{
    check(index >= 0 && index < graph->params.count, "parameter %d of %d",
          index, graph->params.count);
    return &graph->params.tensors[index].public;
}

size_t nn_graph_param_elems(const nn_graph_t *graph)
{
    return graph->params.elems;
}

int nn_graph_buffers(const nn_graph_t *graph)
{
    return graph->buffers.count;
}

const nn_param_t *nn_graph_buffer(const nn_graph_t *graph, int index)
{
    check(index >= 0 && index < graph->buffers.count, "buffer %d of %d", index,
          graph->buffers.count);
    return &graph->buffers.tensors[index].public;
}

size_t nn_graph_buffer_elems(const nn_graph_t *graph)
{
    return graph->buffers.elems;
}

int nn_graph_syncs(const nn_graph_t *graph)
{
    int count = 0;

    for (int i = 0; i < graph->layer_count; i++)
        count += graph->layers[i].config.kind == OP_SYNCBATCHNORM;
    return count;
}

/* Number of parameters whose owner comes after layer [index]. */
static int params_after(const nn_graph_t *graph, int index)
{
    int count = 0;

    while (count < graph->params.count &&
           graph->params.tensors[count].public.layer > index)
        count++;
    return count;
}

/* Describe the sum over ranks that layer [index] makes. Forward sums x, x * x
 * and the number of values; backward sums dy and dy * x. */
static nn_sync_t sync_of(const nn_graph_t *graph, int index, bool back)
{
    const nn_layer_t *layer = &graph->layers[index];
    const size_t sums = 2 * (size_t)layer->config.in.dims[1];

    if (!back)
        return (nn_sync_t){.count = sums + 1};
    return (nn_sync_t){.count = layer->back ? sums : 0,
                       .back = true,
                       .grads = params_after(graph, index)};
}

/* In backward the last layer comes first. */
nn_sync_t nn_graph_sync(const nn_graph_t *graph, int index)
{
    const int syncs = nn_graph_syncs(graph);
    const bool back = index >= syncs;
    int left = back ? 2 * syncs - 1 - index : index;

    for (int i = 0; i < graph->layer_count; i++)
        if (graph->layers[i].config.kind == OP_SYNCBATCHNORM && left-- == 0)
            return sync_of(graph, i, back);
    return (nn_sync_t){.count = 0};
}

size_t nn_graph_moment_elems(const nn_graph_t *graph)
{
    return graph->moments;
}

void nn_graph_init(const nn_graph_t *graph, uint64_t seed, crew_t *crew,
                   float *params, float *buffers)
{
    nn_table_fill(&graph->params, seed, crew, params);
    nn_table_fill(&graph->buffers, seed, crew, buffers);
}

err_code_t nn_graph_fold(const nn_graph_t *graph,
                         const op_backend_ops_t *backend, const nn_fold_t *fold,
                         dev_stream_t *stream, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < graph->layer_count && rc == ERR_OK; i++) {
        const nn_layer_t *layer = &graph->layers[i];
        const op_desc_t *in = &layer->config.in;
        op_fold_t call = {.channels = (size_t)in->dims[1],
                          .momentum = layer->momentum,
                          .sums = fold->moments + layer->moments,
                          .step = fold->step,
                          .sound = fold->sound};
        const int64_t space = nn_sample_elems(in) / in->dims[1];

        if (!nn_layer_has_moments(layer))
            continue;
        check(layer->moments + 2 * call.channels <= graph->moments,
              "layer %s has moments from %zu on, of %zu", layer->name,
              layer->moments, graph->moments);
        call.space = (double)space;
        call.lone = space == 1 ? UINT64_C(1) << nn_layer_moments(layer) : 0;
        call.mean =
            fold->buffers + nn_graph_buffer(graph, layer->buffers[0])->offset;
        call.var =
            fold->buffers + nn_graph_buffer(graph, layer->buffers[1])->offset;
        rc = op_fold(backend, &call, stream, err);
    }
    return rc;
}

void nn_graph_fold_moments(const nn_graph_t *graph, const double *moments,
                           int64_t samples, float *buffers)
{
    const op_step_t step = {.samples = (double)samples};
    const nn_fold_t fold = {
        .moments = moments, .step = &step, .buffers = buffers};

    nn_graph_fold(graph, NULL, &fold, NULL, NULL);
}
