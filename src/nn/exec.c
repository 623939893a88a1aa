/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An exec: the graph's ops opened for one batch size, each taking its inputs in
 * the layouts that the ops before chose; then run forward and backward in the
 * arena that exec_plan.c laid out.
 */

#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

/* Samples of one run, so that no product of sizes overflows. */
#define BATCH_LIMIT (1 << 24)

static bool is_loss(const nn_exec_t *exec, int i)
{
    return i >= nn_exec_first_loss(exec);
}

/* Does backward run through layer or graph input [index]? */
static bool runs_back(const nn_exec_t *exec, int index)
{
    return !nn_is_input(index) && exec->nodes[index].back;
}

/* What layer or graph input [index] gives. */
static op_desc_t node_desc(const nn_exec_t *exec, int index)
{
    op_desc_t desc;

    if (!nn_is_input(index))
        return *op_out(exec->nodes[index].op);
    nn_desc_input(exec->graph, nn_input_of(index), exec->config.batch, &desc);
    return desc;
}

static err_code_t node_open(nn_exec_t *exec, int i, err_t *err)
{
    nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    op_config_t config = layer->config;
    bool back = layer->param_count > 0 || is_loss(exec, i);
    err_code_t code;

    if (node->joined != NN_NONE)
        return ERR_OK;
    for (int k = 0; k < node->inputs; k++)
        back = back || runs_back(exec, node->from[k]);
    config.in = node_desc(exec, node->from[0]);
    config.others = node->inputs - 1;
    for (int k = 1; k < node->inputs; k++)
        config.other[k - 1] = node_desc(exec, node->from[k]);
    config.relu = node->relu;
    config.activation = node->activation;
    config.y_stored_as = node->y_stored_as;
    node->back = back && exec->config.training;
    config.training = exec->config.training;
    config.compute_type = exec->config.compute_type;
    config.need_dx = runs_back(exec, node->from[0]);
    config.threads = exec->config.threads;
    code = op_open(exec->backend, exec->config.dev, &config, &node->op, err);
    if (code != ERR_OK)
        err_prefix(err, "%s: layer %s", layer->place, layer->name);
    return code;
}

/* If the input of [loss] is in a private layout: an op that makes it plain.
 * Flattening does, as two-dimensional tensors have no other layout. */
static err_code_t plain_open(nn_exec_t *exec, int loss, err_t *err)
{
    op_t **plain = &exec->plain[loss].op;
    op_config_t config = {
        .kind = OP_FLATTEN,
        .threads = exec->config.threads,
        .in = *op_out(exec->nodes[nn_exec_loss_from(exec, loss)].op),
    };
    err_code_t code;

    if (config.in.layout == NULL)
        return ERR_OK;
    code = op_open(exec->backend, exec->config.dev, &config, plain, err);
    if (code != ERR_OK)
        return code;
    if (op_out(*plain)->layout != NULL)
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

    check(config->batch > 0 && config->threads > 0,
          "a batch of %lld with %d threads", (long long)config->batch,
          config->threads);
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
    code = op_backend_get(config->op_backend, &exec->backend, err);
    if (code != ERR_OK)
        goto fail;
    code = mem_alloc((size_t)(graph->layer_count + graph->loss_count) *
                         sizeof *exec->nodes,
                     "an exec", &block, err);
    if (code != ERR_OK)
        goto fail;
    exec->nodes = block;
    exec->count = graph->layer_count + graph->loss_count;
    code = nn_exec_link(exec, err);
    if (code == ERR_OK)
        nn_exec_store(exec);
    for (int i = 0; i < exec->count && code == ERR_OK; i++)
        code = node_open(exec, i, err);
    for (int k = 0; k < graph->loss_count && code == ERR_OK; k++)
        code = plain_open(exec, k, err);
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
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        op_close(exec->plain[k].op);
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

void nn_exec_bind(nn_exec_t *exec, const nn_bind_t *bind)
{
    check((uintptr_t)bind->activations % MEM_ALIGN == 0, "activations at %p",
          (void *)bind->activations);
    exec->bind = *bind;
}

/* Address of a block; NULL for none. */
static void *block_at(const nn_exec_t *exec, int block)
{
    if (block == NN_NONE)
        return NULL;
    return (char *)exec->bind.activations + exec->blocks[block].offset;
}

/* What a node's forward writes: that of the step, or that of backward. */
static const nn_pass_t *pass_of(const nn_node_t *node, bool again)
{
    return again ? &node->again : &node->first;
}

/* Where the output of layer or graph input [index] lies. */
static const void *output_at(const nn_exec_t *exec, int index, bool again,
                             const nn_batch_t *batch)
{
    return nn_is_input(index)
               ? batch->inputs[nn_input_of(index)]
               : block_at(exec, pass_of(&exec->nodes[index], again)->y);
}

/* The arguments that forward and backward share; [again] in backward. */
static op_args_t node_args(const nn_exec_t *exec, int i, bool again,
                           const nn_batch_t *batch)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    op_args_t args = {
        .x = output_at(exec, node->from[0], again, batch),
        .y = block_at(exec, pass_of(node, again)->y),
        .target = is_loss(exec, i) ? batch->targets[layer->target] : NULL,
        .sample_weights = layer->sample_weight > 0
                              ? batch->targets[layer->sample_weight - 1]
                              : NULL,
        .workspace = block_at(exec, pass_of(node, again)->workspace),
        .sample_ids = batch->sample_ids,
        .seed = batch->seed,
        .epoch = batch->epoch,
        .layer = (uint64_t)i,
        .reduce_small = exec->bind.reduce_small,
        .reduce_context = exec->bind.context,
    };

    for (int k = 1; k < node->inputs; k++)
        args.other[k - 1] = output_at(exec, node->from[k], again, batch);
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

/* The batch's moments count once, however often they are computed. */
static err_code_t node_forward(nn_exec_t *exec, int i, bool again,
                               const nn_batch_t *batch, err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    op_args_t args = node_args(exec, i, again, batch);
    err_code_t code;

    args.scratch = block_at(exec, pass_of(node, again)->scratch);
    args.moments = block_at(exec, pass_of(node, again)->moments);
    if (is_loss(exec, i)) {
        nn_result_t *results = block_at(exec, exec->result);

        args.loss_sum = &results[i - nn_exec_first_loss(exec)].loss_sum;
        args.correct = &results[i - nn_exec_first_loss(exec)].correct;
    }
    code = op_forward(node->op, &args, exec->bind.stream, err);
    if (code == ERR_OK && args.moments != NULL && !again)
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
    const int losses = exec->graph->loss_count;
    const size_t bytes = (size_t)losses * sizeof *sums;
    nn_result_t got[NN_FIELDS_MAX] = {{0}};
    err_code_t code = ERR_OK;

    for (int i = 0; i < exec->count && code == ERR_OK; i++) {
        /* Not before: the block may hold something else until then. */
        if (i == nn_exec_first_loss(exec))
            code = dev_fill(stream, sums, 0, bytes, err);
        if (code == ERR_OK && exec->nodes[i].op != NULL)
            code = node_forward(exec, i, false, batch, err);
    }
    if (code == ERR_OK)
        code = dev_copy(stream, got, sums, bytes, DEV_DEV_TO_HOST, err);
    if (code == ERR_OK)
        code = dev_stream_wait(stream, err);
    for (int k = 0; k < losses && code == ERR_OK; k++) {
        result[k] = got[k];
        result[k].weight =
            nn_batch_weigh(exec->graph, k, batch, exec->config.batch);
    }
    return code;
}

/* Where op's parameter gradients go: into place, or beside it. */
static void point_gradients(const nn_exec_t *exec, int i, bool accumulate,
                            op_args_t *args)
{
    const int own = exec->nodes[i].own;
    const nn_layer_t *layer = &exec->graph->layers[own];
    const bool first = nn_exec_writes_first(exec, own, accumulate);
    char *fresh = block_at(exec, exec->nodes[i].fresh);

    args->add = !first && op_adds(exec->nodes[i].op);
    for (int k = 0; k < layer->param_count; k++) {
        const nn_param_t *param = nn_graph_param(exec->graph, layer->params[k]);

        args->dparams[k] = first || args->add
                               ? (void *)(exec->bind.grads + param->offset)
                               : (void *)fresh;
        if (fresh != NULL)
            fresh += mem_round(sizeof(float) * param->count);
    }
}

/* Add the fresh gradients, then say that the layer's are ready, in order of the
 * arena (the last parameter of a layer lies first). Shared ones are ready when
 * their owner, the first user, is done. */
static err_code_t finish_gradients(nn_exec_t *exec, int i, bool accumulate,
                                   const op_args_t *args, err_t *err)
{
    const int own = exec->nodes[i].own;
    const nn_layer_t *layer = &exec->graph->layers[own];
    const bool first = nn_exec_writes_first(exec, own, accumulate);
    const nn_bind_t *bind = &exec->bind;
    err_code_t code = ERR_OK;

    for (int k = layer->param_count - 1; k >= 0 && code == ERR_OK; k--) {
        const nn_param_t *param = nn_graph_param(exec->graph, layer->params[k]);

        if (!first && !args->add)
            code = op_add(exec->backend, bind->grads + param->offset,
                          args->dparams[k], param->count, OP_FLOAT32,
                          bind->stream, err);
        if (code == ERR_OK && bind->grad_ready != NULL && layer->owner == own)
            code = bind->grad_ready(bind->context, layer->params[k], err);
    }
    return code;
}

/* Where the inputs' gradients go. */
static void point_inputs(const nn_exec_t *exec, int i, op_args_t *args)
{
    const nn_node_t *node = &exec->nodes[i];

    args->dx = block_at(exec, node->grad[0]);
    args->add_dx = node->sums;
    for (int k = 1; k < node->inputs; k++)
        args->dother[k - 1] = block_at(exec, node->grad[k]);
}

/* Add up the gradients of tensors that several layers read: always the last
 * reader first, so that the sum has the same bits every time. */
static err_code_t add_inputs(nn_exec_t *exec, int i, err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];
    err_code_t code = ERR_OK;

    for (int k = 0; k < node->inputs && code == ERR_OK; k++) {
        const nn_node_t *input;
        const op_desc_t *out;

        if (!node->adds[k])
            continue;
        input = &exec->nodes[node->from[k]];
        out = op_grad_out(input->op);
        code = op_add(exec->backend, block_at(exec, input->dy),
                      block_at(exec, node->grad[k]), op_desc_stored_elems(out),
                      op_desc_storage(out), exec->bind.stream, err);
    }
    return code;
}

/* The op's own part. A loss of which nothing counts has gradient 0, whatever
 * its targets hold. */
static err_code_t op_run_back(nn_exec_t *exec, int i, const op_args_t *args,
                              err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];

    if (is_loss(exec, i) && args->scale == 0)
        return args->dx == NULL
                   ? ERR_OK
                   : dev_fill(exec->bind.stream, args->dx, 0,
                              op_out(exec->nodes[node->from[0]].op)->bytes,
                              err);
    return op_backward(node->op, args, exec->bind.stream, err);
}

static err_code_t node_backward(nn_exec_t *exec, int i, const nn_batch_t *batch,
                                const double *scale, bool accumulate,
                                err_t *err)
{
    nn_node_t *node = &exec->nodes[i];
    op_args_t args = node_args(exec, i, true, batch);
    err_code_t code;

    if (is_loss(exec, i))
        args.scale = scale[i - nn_exec_first_loss(exec)];
    args.scratch = block_at(exec, node->scratch);
    args.dy = block_at(exec, node->dy);
    point_inputs(exec, i, &args);
    point_gradients(exec, i, accumulate, &args);
    code = op_run_back(exec, i, &args, err);
    if (code == ERR_OK)
        code = add_inputs(exec, i, err);
    if (code != ERR_OK) {
        err_prefix(err, "layer %s", exec->graph->layers[node->own].name);
        return code;
    }
    return finish_gradients(exec, i, accumulate, &args, err);
}

/* Compute the block that ends with node [last] again, as far as its backward
 * needs that. */
static err_code_t block_again(nn_exec_t *exec, int last,
                              const nn_batch_t *batch, err_t *err)
{
    err_code_t code = ERR_OK;

    for (int i = nn_recompute_start(exec, last); i <= last && code == ERR_OK;
         i++)
        if (exec->nodes[i].redo)
            code = node_forward(exec, i, true, batch, err);
    return code;
}

err_code_t nn_exec_backward(nn_exec_t *exec, const nn_batch_t *batch,
                            const double *scale, bool accumulate, err_t *err)
{
    const nn_node_t *nodes = exec->nodes;
    err_code_t code = ERR_OK;

    check(exec->config.training, "backward of an exec for evaluation");
    check(!accumulate || !exec->config.anew,
          "gradients are added where each step writes them anew");
    for (int i = exec->count - 1; i >= 0 && code == ERR_OK; i--) {
        if (i < exec->count - 1 && nodes[i].part != nodes[i + 1].part)
            code = block_again(exec, i, batch, err);
        if (code == ERR_OK && nodes[i].back)
            code = node_backward(exec, i, batch, scale, accumulate, err);
    }
    return code;
}

err_code_t nn_exec_output(nn_exec_t *exec, int loss, float *out, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    const nn_node_t *last = &exec->nodes[nn_exec_loss_from(exec, loss)];
    const nn_plain_t *plain = &exec->plain[loss];
    const op_desc_t *desc = op_out(last->op);
    const void *from = block_at(exec, last->first.y);
    op_args_t args = {.x = from};
    err_code_t code = ERR_OK;

    if (plain->op != NULL) {
        args.y = block_at(exec, plain->y);
        args.scratch = block_at(exec, plain->scratch);
        from = args.y;
        code = op_forward(plain->op, &args, stream, err);
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
