/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An exec: the ops of the graph, opened for one batch size. Each op takes its
 * inputs in the layouts that the ops before it chose. Forward and backward run
 * in the arena that exec_plan.c laid out.
 */

#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

/* Maximum number of samples of one run, so that no product of sizes
 * overflows. */
#define BATCH_LIMIT (1 << 24)

_Static_assert(OP_LOSSES_MAX == NN_FIELDS_MAX, "a scale for each loss");

static bool is_loss(const nn_exec_t *exec, int i)
{
    return i >= nn_exec_first_loss(exec);
}

/* Does backward run through layer [index]? False for graph inputs. */
static bool runs_back(const nn_exec_t *exec, int index)
{
    return !nn_is_input(index) && exec->nodes[index].back;
}

/* Describe the output of layer [index], or graph input [index]. */
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
    err_code_t rc;

    if (node->joined != NN_NONE)
        return ERR_OK;
    for (int k = 0; k < node->inputs; k++)
        back = back || runs_back(exec, node->from[k]);
    check(node->inputs >= 1 && node->inputs <= OP_INPUTS_MAX,
          "node %d has %d inputs", i, node->inputs);
    for (int k = 0; k < node->inputs; k++)
        check(node->from[k] < i && (nn_is_input(node->from[k]) ||
                                    exec->nodes[node->from[k]].op != NULL),
              "node %d reads node %d, which is not open", i, node->from[k]);
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
    rc = op_begin(exec->backend, exec->config.dev, &config, &node->op, err);
    if (rc != ERR_OK)
        err_prefix(err, "%s: layer %s", layer->place, layer->name);
    return rc;
}

static err_code_t node_settle(const nn_exec_t *exec, int i, err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    err_code_t rc = node->op != NULL ? op_settle(node->op, err) : ERR_OK;

    if (rc != ERR_OK)
        err_prefix(err, "%s: layer %s", layer->place, layer->name);
    return rc;
}

/* If the input of [loss] is in a layout of the backend, open an op that copies
 * it to plain layout. A flatten does that, as two-dimensional tensors are
 * always plain. */
static err_code_t plain_open(nn_exec_t *exec, int loss, err_t *err)
{
    op_t **plain = &exec->plain[loss].op;
    op_config_t config = {
        .kind = OP_FLATTEN,
        .threads = exec->config.threads,
        .in = *op_out(exec->nodes[nn_exec_loss_from(exec, loss)].op),
    };
    err_code_t rc;

    if (config.in.layout == NULL)
        return ERR_OK;
    rc = op_open(exec->backend, exec->config.dev, &config, plain, err);
    if (rc != ERR_OK)
        return rc;
    if (op_out(*plain)->layout != NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "backend %s cannot convert the model's output to plain "
                       "layout; add a flatten as last layer",
                       exec->config.op_backend);
    return ERR_OK;
}

err_code_t nn_exec_begin(const nn_graph_t *graph,
                         const nn_exec_config_t *config, nn_exec_t **out,
                         err_t *err)
{
    nn_exec_t *exec = NULL;
    err_code_t rc;

    check(config->batch > 0 && config->threads > 0,
          "a batch of %lld with %d threads", (long long)config->batch,
          config->threads);
    if (config->batch > BATCH_LIMIT)
        return err_set(err, ERR_CONFIG,
                       "a batch of %lld samples a rank is larger than 2^24; "
                       "use a smaller train.batch or more train.accumulate",
                       (long long)config->batch);
    rc = mem_new(nn_exec_t, 1, "an exec", &exec, err);
    if (rc != ERR_OK)
        return rc;
    exec->graph = graph;
    exec->config = *config;
    rc = op_backend_get(config->op_backend, &exec->backend, err);
    if (rc != ERR_OK)
        goto fail;
    rc = mem_new(nn_node_t, (size_t)(graph->layer_count + graph->loss_count),
                 "an exec", &exec->nodes, err);
    if (rc != ERR_OK)
        goto fail;
    exec->count = graph->layer_count + graph->loss_count;
    rc = nn_exec_link(exec, err);
    if (rc == ERR_OK)
        nn_exec_store(exec);
    for (int i = 0; i < exec->count && rc == ERR_OK; i++)
        rc = node_open(exec, i, err);
    for (int k = 0; k < graph->loss_count && rc == ERR_OK; k++)
        rc = plain_open(exec, k, err);
    if (rc != ERR_OK)
        goto fail;
    *out = exec;
    return ERR_OK;
fail:
    nn_exec_close(exec);
    return rc;
}

err_code_t nn_exec_settle(nn_exec_t *exec, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < exec->count && rc == ERR_OK; i++)
        rc = node_settle(exec, i, err);
    return rc == ERR_OK ? nn_exec_plan(exec, err) : rc;
}

err_code_t nn_exec_open(const nn_graph_t *graph, const nn_exec_config_t *config,
                        nn_exec_t **out, err_t *err)
{
    nn_exec_t *exec = NULL;
    err_code_t rc = nn_exec_begin(graph, config, &exec, err);

    if (rc == ERR_OK)
        rc = nn_exec_settle(exec, err);
    if (rc == ERR_OK)
        *out = exec;
    else
        nn_exec_close(exec);
    return rc;
}

void nn_exec_close(nn_exec_t *exec)
{
    if (exec == NULL)
        return;
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        op_close(exec->plain[k].op);
    /* Readers first: they refer to the layouts of the nodes that they read. */
    for (int i = exec->count - 1; i >= 0; i--)
        op_close(exec->nodes[i].op);
    mem_free(exec->nodes);
    mem_free(exec->regions);
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

/* Address of a region; NULL for NN_NONE. */
static void *region_at(const nn_exec_t *exec, int region)
{
    if (region == NN_NONE)
        return NULL;
    check(region >= 0 && region < exec->region_count &&
              exec->regions[region].offset + exec->regions[region].bytes <=
                  exec->bytes,
          "region %d of %d, in an arena of %zu bytes", region,
          exec->region_count, exec->bytes);
    return (char *)exec->bind.activations + exec->regions[region].offset;
}

/* The regions that the node's forward writes: in the forward pass, or, with
 * [again], before its backward. */
static const nn_pass_t *pass_of(const nn_node_t *node, bool again)
{
    return again ? &node->again : &node->first;
}

/* Address of the output of layer [index], or of graph input [index]. */
static const void *output_at(const nn_exec_t *exec, int index, bool again,
                             const nn_batch_t *batch)
{
    return nn_is_input(index)
               ? batch->inputs[nn_input_of(index)]
               : region_at(exec, pass_of(&exec->nodes[index], again)->y);
}

/* The arguments that forward and backward have in common. [again]: the call
 * comes after the forward pass, so outputs that were computed again are in
 * other regions. */
static op_args_t node_args(const nn_exec_t *exec, int i, bool again,
                           const nn_batch_t *batch)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    op_args_t args = {
        .stream = exec->bind.stream,
        .x = output_at(exec, node->from[0], again, batch),
        .y = region_at(exec, pass_of(node, again)->y),
        .target = is_loss(exec, i) ? batch->targets[layer->target] : NULL,
        .sample_weights = layer->sample_weight > 0
                              ? batch->targets[layer->sample_weight - 1]
                              : NULL,
        .workspace = region_at(exec, pass_of(node, again)->workspace),
        .sample_ids = batch->sample_ids,
        .step = exec->bind.step,
        .loss = is_loss(exec, i) ? i - nn_exec_first_loss(exec) : 0,
        .layer = (uint64_t)i,
        .reduce = {.small = exec->bind.reduce_small,
                   .on = exec->bind.reduce_on,
                   .context = exec->bind.context},
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

/* The work on node [i] that began at [begin] ends. */
static void node_trace(const nn_exec_t *exec, int i, double begin,
                       const char *what)
{
    trace_end(exec->bind.trace, begin,
              exec->graph->layers[exec->nodes[i].own].name, what,
              TRACE_NO_NUMBER);
}

/* Run the forward of node [i]. The moments of the batch are added to the step's
 * in the forward pass only, not when they are computed [again]. */
static err_code_t node_forward(nn_exec_t *exec, int i, bool again,
                               const nn_batch_t *batch, err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    const double begin = trace_begin(exec->bind.trace);
    op_args_t args = node_args(exec, i, again, batch);
    err_code_t rc;

    args.scratch = region_at(exec, pass_of(node, again)->scratch);
    args.moments = region_at(exec, pass_of(node, again)->moments);
    if (is_loss(exec, i)) {
        nn_result_t *results = region_at(exec, exec->result);

        args.loss_sum = &results[i - nn_exec_first_loss(exec)].loss_sum;
        args.correct = &results[i - nn_exec_first_loss(exec)].correct;
    }
    rc = op_forward(node->op, &args, err);
    if (rc == ERR_OK && args.moments != NULL && !again)
        rc = op_add(exec->backend, exec->bind.moments + layer->moments,
                    args.moments, 2 * (size_t)layer->config.in.dims[1],
                    OP_FLOAT64, exec->bind.stream, err);
    node_trace(exec, i, begin, again ? "forward again" : "forward");
    if (rc != ERR_OK)
        err_prefix(err, "layer %s", layer->name);
    return rc;
}

_Static_assert(sizeof(nn_result_t) == 2 * sizeof(double),
               "results are added as an array of doubles");

err_code_t nn_exec_forward(nn_exec_t *exec, const nn_batch_t *batch, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    nn_result_t *results = region_at(exec, exec->result);
    const size_t losses = (size_t)exec->graph->loss_count;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < exec->count && rc == ERR_OK; i++) {
        /* Not earlier: until the first loss the region may be used for
         * something else. */
        if (i == nn_exec_first_loss(exec))
            rc = dev_fill(stream, results, 0, losses * sizeof *results, err);
        if (rc == ERR_OK && exec->nodes[i].op != NULL)
            rc = node_forward(exec, i, false, batch, err);
    }
    if (rc == ERR_OK && exec->bind.results != NULL)
        rc = op_add(exec->backend, exec->bind.results, results, 2 * losses,
                    OP_FLOAT64, stream, err);
    return rc;
}

err_code_t nn_exec_results(nn_exec_t *exec, nn_result_t *result, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    const size_t bytes = (size_t)exec->graph->loss_count * sizeof *result;
    err_code_t rc = dev_copy(stream, result, region_at(exec, exec->result),
                             bytes, DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_stream_wait(stream, err) : rc;
}

/* Set where parameter gradients are written: to their final place, or to a
 * region for this batch only. */
static void point_gradients(const nn_exec_t *exec, int i, bool accumulate,
                            op_args_t *args)
{
    const int own = exec->nodes[i].own;
    const nn_layer_t *layer = &exec->graph->layers[own];
    const bool first = nn_exec_writes_first(exec, own, accumulate);
    char *fresh = region_at(exec, exec->nodes[i].fresh);

    check(layer->param_count == 0 || first || fresh != NULL ||
              op_adds(exec->nodes[i].op),
          "node %d has no region for gradients to be added", i);
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

/* Add this batch's gradients, then report the layer's gradients as ready, in
 * the order of the arena, which begins with the last parameter of a layer.
 * Shared gradients are ready after the backward of their owner, which is the
 * first layer that uses them and so the last to run backward. */
static err_code_t finish_gradients(nn_exec_t *exec, int i, bool accumulate,
                                   const op_args_t *args, err_t *err)
{
    const int own = exec->nodes[i].own;
    const nn_layer_t *layer = &exec->graph->layers[own];
    const bool first = nn_exec_writes_first(exec, own, accumulate);
    const nn_bind_t *bind = &exec->bind;
    err_code_t rc = ERR_OK;

    for (int k = layer->param_count - 1; k >= 0 && rc == ERR_OK; k--) {
        const nn_param_t *param = nn_graph_param(exec->graph, layer->params[k]);

        if (!first && !args->add)
            rc = op_add(exec->backend, bind->grads + param->offset,
                        args->dparams[k], param->count, OP_FLOAT32,
                        bind->stream, err);
        if (rc == ERR_OK && bind->grad_ready != NULL && layer->owner == own)
            rc = bind->grad_ready(bind->context, layer->params[k], err);
    }
    return rc;
}

/* Set where the gradients of inputs are written. */
static void point_inputs(const nn_exec_t *exec, int i, op_args_t *args)
{
    const nn_node_t *node = &exec->nodes[i];

    args->dx = region_at(exec, node->grad[0]);
    args->add_dx = node->sums;
    for (int k = 1; k < node->inputs; k++)
        args->dother[k - 1] = region_at(exec, node->grad[k]);
}

/* Add the gradients of node [i]'s inputs to those that later readers of the
 * same tensors wrote. The order is fixed, last reader first, so that the sum
 * has the same bits every time. */
static err_code_t add_inputs(nn_exec_t *exec, int i, err_t *err)
{
    const nn_node_t *node = &exec->nodes[i];
    err_code_t rc = ERR_OK;

    for (int k = 0; k < node->inputs && rc == ERR_OK; k++) {
        const nn_node_t *input;
        const op_desc_t *out;

        if (!node->adds[k])
            continue;
        check(node->grad[k] != exec->nodes[node->from[k]].dy,
              "node %d adds the gradient of input %d to itself", i, k);
        input = &exec->nodes[node->from[k]];
        out = op_grad_out(input->op);
        rc = op_add(exec->backend, region_at(exec, input->dy),
                    region_at(exec, node->grad[k]), op_desc_stored_elems(out),
                    op_desc_storage(out), exec->bind.stream, err);
    }
    return rc;
}

/* The arguments of nn_exec_backward. */
typedef struct backward {
    const nn_batch_t *batch;
    bool accumulate;
} backward_t;

static err_code_t node_backward(nn_exec_t *exec, int i, const backward_t *call,
                                err_t *err)
{
    nn_node_t *node = &exec->nodes[i];
    const double begin = trace_begin(exec->bind.trace);
    op_args_t args = node_args(exec, i, true, call->batch);
    err_code_t rc;

    args.scratch = region_at(exec, node->scratch);
    args.dy = region_at(exec, node->dy);
    point_inputs(exec, i, &args);
    point_gradients(exec, i, call->accumulate, &args);
    rc = op_backward(node->op, &args, err);
    if (rc == ERR_OK)
        rc = add_inputs(exec, i, err);
    if (rc != ERR_OK) {
        err_prefix(err, "layer %s", exec->graph->layers[node->own].name);
        return rc;
    }
    rc = finish_gradients(exec, i, call->accumulate, &args, err);
    node_trace(exec, i, begin, "backward");
    return rc;
}

/* In the block that ends with node [last], run those forwards again whose
 * results the block's backward needs. */
static err_code_t block_again(nn_exec_t *exec, int last,
                              const nn_batch_t *batch, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = nn_recompute_start(exec, last); i <= last && rc == ERR_OK; i++)
        if (exec->nodes[i].redo)
            rc = node_forward(exec, i, true, batch, err);
    return rc;
}

err_code_t nn_exec_backward(nn_exec_t *exec, const nn_batch_t *batch,
                            bool accumulate, err_t *err)
{
    const backward_t call = {batch, accumulate};
    const nn_node_t *nodes = exec->nodes;
    err_code_t rc = ERR_OK;

    check(exec->config.training, "backward of an exec for evaluation");
    check(!accumulate || !exec->config.overwrite,
          "gradients are added, but this exec overwrites them");
    check(exec->bind.grads != NULL, "backward without memory for gradients");
    for (int i = exec->count - 1; i >= 0 && rc == ERR_OK; i--) {
        if (i < exec->count - 1 && nodes[i].part != nodes[i + 1].part)
            rc = block_again(exec, i, batch, err);
        if (rc == ERR_OK && nodes[i].back)
            rc = node_backward(exec, i, &call, err);
    }
    return rc;
}

err_code_t nn_exec_output(nn_exec_t *exec, int loss, float *out, err_t *err)
{
    dev_stream_t *stream = exec->bind.stream;
    const nn_node_t *last = &exec->nodes[nn_exec_loss_from(exec, loss)];
    const nn_plain_t *plain = &exec->plain[loss];
    const op_desc_t *desc = op_out(last->op);
    const void *from = region_at(exec, last->first.y);
    op_args_t args = {.stream = stream, .x = from};
    err_code_t rc = ERR_OK;

    if (plain->op != NULL) {
        args.y = region_at(exec, plain->y);
        args.scratch = region_at(exec, plain->scratch);
        from = args.y;
        rc = op_forward(plain->op, &args, err);
    }
    if (rc == ERR_OK)
        rc = dev_copy(stream, out, from,
                      sizeof(float) * (size_t)desc->dims[0] *
                          (size_t)nn_sample_elems(desc),
                      DEV_DEV_TO_HOST, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(stream, err);
    return rc;
}
