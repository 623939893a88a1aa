/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An exec: the graph's ops opened for one batch size and chained, each taking
 * its input in the layout that the op before chose; then run forward and
 * backward in the arena that exec_plan.c laid out.
 */
#include <assert.h>

#include "base/mem.h"
#include "nn/nn_priv.h"

/* Samples of one run, so that no product of sizes overflows. */
#define BATCH_LIMIT (1 << 24)

/* First layer with parameters; a graph has one. */
static int first_trained(const nn_graph_t *graph)
{
    int i = 0;

    while (graph->layers[i].param_count == 0)
        i++;
    return i;
}

static err_code_t node_open(nn_exec_t *exec, int i, err_t *err)
{
    const nn_layer_t *layer = &exec->graph->layers[i];
    op_config_t config = layer->config;
    err_code_t code;

    if (i == 0)
        nn_desc_plain(&config.in, exec->config.batch, exec->graph->input_ndim,
                      exec->graph->input);
    else
        config.in = *op_out(exec->nodes[i - 1].op);
    config.training = exec->config.training;
    config.need_dx = exec->config.training && i > exec->first;
    config.threads = exec->config.threads;
    code = op_open(exec->backend, exec->config.dev, &config, &exec->nodes[i].op,
                   err);
    if (code != ERR_OK)
        err_prefix(err, "%s: layer %s", layer->place, layer->name);
    return code;
}

/* If the output is in a private layout: an op that makes it plain. Flattening
 * does, as two-dimensional tensors have no other layout. */
static err_code_t plain_open(nn_exec_t *exec, err_t *err)
{
    op_config_t config = {
        .kind = OP_FLATTEN,
        .threads = exec->config.threads,
        .in = *op_out(exec->nodes[exec->count - 2].op),
    };
    err_code_t code;

    if (config.in.layout == NULL)
        return ERR_OK;
    code = op_open(exec->backend, exec->config.dev, &config, &exec->plain, err);
    if (code != ERR_OK)
        return code;
    if (op_out(exec->plain)->layout != NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "backend %s cannot bring the model's output into plain "
                       "layout; add a flatten as last layer",
                       exec->config.op_backend);
    return ERR_OK;
}

err_code_t nn_exec_open(const nn_graph_t *graph, const nn_exec_config_t *config,
                        nn_exec_t **out, err_t *err)
{
    nn_exec_t *exec = NULL;
    void *block;
    err_code_t code;

    assert(config->batch > 0 && config->threads > 0);
    if (config->batch > BATCH_LIMIT)
        return err_set(err, ERR_CONFIG,
                       "a batch of %lld samples a rank is larger than 2^24; "
                       "use a smaller train.batch or more train.accumulate",
                       (long long)config->batch);
    code = mem_alloc(sizeof *exec, "an exec", &block, err);
    if (code != ERR_OK)
        return code;
    exec = block;
    exec->graph = graph;
    exec->config = *config;
    exec->first = first_trained(graph);
    code = op_backend_get(config->op_backend, &exec->backend, err);
    if (code != ERR_OK)
        goto fail;
    code = mem_alloc((size_t)(graph->layer_count + 1) * sizeof *exec->nodes,
                     "an exec", &block, err);
    if (code != ERR_OK)
        goto fail;
    exec->nodes = block;
    exec->count = graph->layer_count + 1;
    for (int i = 0; i < exec->count && code == ERR_OK; i++)
        code = node_open(exec, i, err);
    if (code == ERR_OK)
        code = plain_open(exec, err);
    if (code == ERR_OK)
        code = nn_exec_plan(exec, err);
    if (code != ERR_OK)
        goto fail;
    *out = exec;
    return ERR_OK;
fail:
    nn_exec_close(exec);
    return code;
}

void nn_exec_close(nn_exec_t *exec)
{
    if (exec == NULL)
        return;
    op_close(exec->plain);
    /* Consumers first: they refer to their producer's layout. */
    for (int i = exec->count - 1; i >= 0; i--)
        op_close(exec->nodes[i].op);
    mem_free(exec->nodes);
    mem_free(exec->blocks);
    mem_free(exec);
}

size_t nn_exec_activation_bytes(const nn_exec_t *exec)
{
    return exec->bytes;
}

double nn_exec_flops(const nn_exec_t *exec)
{
    double flops = 0;

    for (int i = 0; i < exec->count; i++)
        flops += op_flops(exec->nodes[i].op);
    return flops;
}

void nn_exec_bind(nn_exec_t *exec, const nn_bind_t *bind)
{
    assert((uintptr_t)bind->activations % MEM_ALIGN == 0);
    exec->bind = *bind;
}

/* Address of a block; NULL for none. */
static void *block_at(const nn_exec_t *exec, int block)
{
    if (block == NN_NONE)
        return NULL;
    return (char *)exec->bind.activations + exec->blocks[block].offset;
}

/* The arguments that forward and backward share. */
static op_args_t node_args(const nn_exec_t *exec, int i,
                           const nn_batch_t *batch)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[i];
    const bool loss = i == exec->count - 1;
    op_args_t args = {
        .x = i == 0 ? batch->input : block_at(exec, exec->nodes[i - 1].y),
        .y = block_at(exec, node->y),
        .target = loss ? batch->target : NULL,
        .workspace = block_at(exec, node->workspace),
        .sample_ids = batch->sample_ids,
        .seed = batch->seed,
        .epoch = batch->epoch,
        .layer = (uint64_t)i,
    };

    for (int k = 0; k < layer->param_count; k++)
        args.params[k] = exec->bind.params +
                         nn_graph_param(exec->graph, layer->params[k])->offset;
    if (layer->kind->buffers[0].name != NULL) {
        args.running_mean =
            exec->bind.buffers +
            nn_graph_buffer(exec->graph, layer->buffers[0])->offset;
        args.running_var =
            exec->bind.buffers +
            nn_graph_buffer(exec->graph, layer->buffers[1])->offset;
    }
    return args;
}

static err_code_t node_forward(nn_exec_t *exec, int i, const nn_batch_t *batch,
                               err_t *err)
{
    nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[i];
    nn_result_t *result = block_at(exec, exec->result);
    op_args_t args = node_args(exec, i, batch);
    err_code_t code;

    args.scratch = block_at(exec, node->scratch_forward);
    args.moments = block_at(exec, node->moments);
    if (i == exec->count - 1) {
        args.loss_sum = &result->loss_sum;
        args.correct = &result->correct;
    }
    code = op_forward(node->op, &args, exec->bind.stream, err);
    if (code == ERR_OK && args.moments != NULL)
        code = op_add(exec->backend, exec->bind.moments + layer->moments,
                      args.moments, 2 * (size_t)layer->config.in.dims[1],
                      OP_FLOAT64, exec->bind.stream, err);
    if (code != ERR_OK)
        err_prefix(err, "layer %s", layer->name);
    return code;
}

err_code_t nn_exec_forward(nn_exec_t *exec, const nn_batch_t *batch,
                           nn_result_t *result, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    nn_result_t *sums = block_at(exec, exec->result);
    nn_result_t got = {0};
    err_code_t code;

    code = dev_fill(stream, sums, 0, sizeof *sums, err);
    for (int i = 0; i < exec->count && code == ERR_OK; i++)
        code = node_forward(exec, i, batch, err);
    if (code == ERR_OK)
        code = dev_copy(stream, &got, sums, sizeof got, DEV_DEV_TO_HOST, err);
    if (code == ERR_OK)
        code = dev_stream_wait(stream, err);
    if (code == ERR_OK)
        *result = got;
    return code;
}

/* Where op's parameter gradients go: into place, or beside it. */
static void point_gradients(const nn_exec_t *exec, int i, bool accumulate,
                            op_args_t *args)
{
    const nn_layer_t *layer = &exec->graph->layers[i];
    char *fresh = block_at(exec, exec->nodes[i].fresh);

    for (int k = 0; k < layer->param_count; k++) {
        const nn_param_t *param = nn_graph_param(exec->graph, layer->params[k]);

        args->dparams[k] = accumulate
                               ? (void *)fresh
                               : (void *)(exec->bind.grads + param->offset);
        fresh += mem_round(sizeof(float) * param->count);
    }
}

/* Add the fresh gradients, then say that the layer's are ready, in order of the
 * arena (the last parameter of a layer lies first). */
static err_code_t finish_gradients(nn_exec_t *exec, int i, bool accumulate,
                                   const op_args_t *args, err_t *err)
{
    const nn_layer_t *layer = &exec->graph->layers[i];
    const nn_bind_t *bind = &exec->bind;
    err_code_t code = ERR_OK;

    for (int k = layer->param_count - 1; k >= 0 && code == ERR_OK; k--) {
        const nn_param_t *param = nn_graph_param(exec->graph, layer->params[k]);

        if (accumulate)
            code = op_add(exec->backend, bind->grads + param->offset,
                          args->dparams[k], param->count, OP_FLOAT32,
                          bind->stream, err);
        if (code == ERR_OK && bind->grad_ready != NULL)
            code = bind->grad_ready(bind->context, layer->params[k], err);
    }
    return code;
}

static err_code_t node_backward(nn_exec_t *exec, int i, const nn_batch_t *batch,
                                double scale, bool accumulate, err_t *err)
{
    nn_node_t *node = &exec->nodes[i];
    op_args_t args = node_args(exec, i, batch);
    err_code_t code;

    args.scale = scale;
    args.scratch = block_at(exec, node->scratch_backward);
    args.dy = block_at(exec, node->dy);
    if (i > exec->first)
        args.dx = block_at(exec, exec->nodes[i - 1].dy);
    point_gradients(exec, i, accumulate, &args);
    code = op_backward(node->op, &args, exec->bind.stream, err);
    if (code != ERR_OK) {
        err_prefix(err, "layer %s", exec->graph->layers[i].name);
        return code;
    }
    return finish_gradients(exec, i, accumulate, &args, err);
}

err_code_t nn_exec_backward(nn_exec_t *exec, const nn_batch_t *batch,
                            double scale, bool accumulate, err_t *err)
{
    err_code_t code = ERR_OK;

    assert(exec->config.training);
    for (int i = exec->count - 1; i >= exec->first && code == ERR_OK; i--)
        code = node_backward(exec, i, batch, scale, accumulate, err);
    return code;
}

err_code_t nn_exec_output(nn_exec_t *exec, float *out, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    const nn_node_t *last = &exec->nodes[exec->count - 2];
    const op_desc_t *desc = op_out(last->op);
    const void *from = block_at(exec, last->y);
    op_args_t args = {.x = from};
    err_code_t code = ERR_OK;

    if (exec->plain != NULL) {
        args.y = block_at(exec, exec->plain_y);
        args.scratch = block_at(exec, exec->plain_scratch);
        from = args.y;
        code = op_forward(exec->plain, &args, stream, err);
    }
    if (code == ERR_OK)
        code = dev_copy(stream, out, from,
                        sizeof(float) * (size_t)desc->dims[0] *
                            (size_t)nn_sample_elems(desc),
                        DEV_DEV_TO_HOST, err);
    if (code == ERR_OK)
        code = dev_stream_wait(stream, err);
    return code;
}
