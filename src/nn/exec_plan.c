/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which blocks an exec needs, and when. With the loss as op number L, time is
 * counted in calls: op i's forward is time i, its backward time 2L + 1 - i.
 *
 * In training, what a layer's backward reads (inputs, output, workspace) lives
 * until then. A gradient lives from the backward that writes it first, that of
 * the tensor's last reader, to the backward of the layer that made the tensor;
 * other readers write beside it and their part is added. Ops that can work in
 * place do, where nobody needs what they overwrite; then several values share
 * one block, which lives as long as all of them.
 */
#include "base/mem.h"
#include "nn/nn_priv.h"

/* y, workspace, 2 scratch, moments, fresh, and a gradient for each input; and
 * per exec: result, plain output and its scratch. */
#define BLOCKS_PER_NODE (6 + OP_INPUTS_MAX)
#define BLOCKS_PER_EXEC 3

static int time_backward(const nn_exec_t *exec, int node)
{
    return 2 * exec->count - 1 - node;
}

static void read_at(nn_node_t *node, int time)
{
    if (time > node->read)
        node->read = time;
}

/* When is each output read last? */
static void plan_reads(nn_exec_t *exec)
{
    nn_node_t *nodes = exec->nodes;

    for (int i = 0; i < exec->count; i++) {
        const nn_layer_t *layer = &exec->graph->layers[i];
        const int later = time_backward(exec, i);

        nodes[i].read = i;
        if (nodes[i].back && op_reads_y(nodes[i].op))
            read_at(&nodes[i], later);
        for (int k = 0; k < layer->inputs; k++) {
            if (layer->from[k] == NN_INPUT)
                continue;
            read_at(&nodes[layer->from[k]], i);
            if (nodes[i].back && op_reads_x(nodes[i].op))
                read_at(&nodes[layer->from[k]], later);
        }
    }
    /* nn_exec_output may be asked for it at any time. */
    read_at(&nodes[exec->count - 2], 2 * exec->count - 1);
}

static int block_add(nn_exec_t *exec, size_t bytes, int first, int last)
{
    if (bytes == 0)
        return NN_NONE;
    exec->blocks[exec->block_count] = (nn_block_t){
        .bytes = bytes, .first = first, .last = last, .busy = last};
    return exec->block_count++;
}

/* Let [block] also hold [bytes] from [first] to [last]. */
static void block_extend(nn_exec_t *exec, int block, size_t bytes, int first,
                         int last)
{
    nn_block_t *b = &exec->blocks[block];

    if (bytes > b->bytes)
        b->bytes = bytes;
    if (first < b->first)
        b->first = first;
    if (last > b->last)
        b->last = last;
}

/* May [node] write over its first input? */
static bool may_overwrite(const nn_exec_t *exec, int node)
{
    const nn_layer_t *layer = &exec->graph->layers[node];
    const int from = layer->from[0];
    int block;

    if (from == NN_INPUT || !op_in_place(exec->nodes[node].op))
        return false; /* the graph's input is not ours */
    block = exec->nodes[from].y;
    for (int k = 1; k < layer->inputs; k++)
        if (layer->from[k] != NN_INPUT &&
            exec->nodes[layer->from[k]].y == block)
            return false;
    return layer->kind->view || exec->blocks[block].busy <= node;
}

static void plan_outputs(nn_exec_t *exec)
{
    for (int i = 0; i < exec->count - 1; i++) {
        nn_node_t *node = &exec->nodes[i];
        size_t bytes = op_out(node->op)->bytes;
        int busy;

        if (!may_overwrite(exec, i)) {
            node->y = block_add(exec, bytes, i, node->read);
            continue;
        }
        node->y = exec->nodes[exec->graph->layers[i].from[0]].y;
        block_extend(exec, node->y, bytes, i, node->read);
        /* A view's input is still there, too. */
        busy = exec->blocks[node->y].busy;
        exec->blocks[node->y].busy =
            exec->graph->layers[i].kind->view && busy > node->read ? busy
                                                                   : node->read;
    }
}

/* The gradient of input [k] of [node]: where it is written, and whether it is
 * added to what other readers have written. */
static void plan_input(nn_exec_t *exec, int node, int k)
{
    nn_node_t *reader = &exec->nodes[node];
    const int from = exec->graph->layers[node].from[k];
    const int made = time_backward(exec, node);
    nn_node_t *input;
    size_t bytes;

    reader->grad[k] = NN_NONE;
    if (from == NN_INPUT || !exec->nodes[from].back)
        return;
    input = &exec->nodes[from];
    bytes = op_out(input->op)->bytes;
    reader->adds[k] = input->dy != NN_NONE;
    /* In place, over the gradient that has been eaten with this. */
    if (k == 0 && reader->dy != NN_NONE && op_in_place(reader->op)) {
        reader->grad[k] = reader->dy;
        block_extend(exec, reader->dy, bytes, made, made);
    } else {
        reader->grad[k] = block_add(exec, bytes, made, made);
    }
    if (reader->adds[k])
        return;
    input->dy = reader->grad[k];
    block_extend(exec, input->dy, bytes, made, time_backward(exec, from));
}

static void plan_gradients(nn_exec_t *exec)
{
    for (int i = exec->count - 1; i >= 0; i--)
        for (int k = 0; k < exec->graph->layers[i].inputs; k++) {
            exec->nodes[i].adds[k] = false;
            exec->nodes[i].grad[k] = NN_NONE;
            if (exec->nodes[i].back)
                plan_input(exec, i, k);
        }
}

/* Room for this batch's gradients of a layer while others are added to. */
static size_t fresh_bytes(const nn_graph_t *graph, const nn_layer_t *layer)
{
    size_t bytes = 0;

    for (int k = 0; k < layer->param_count; k++)
        bytes += mem_round(sizeof(float) *
                           nn_graph_param(graph, layer->params[k])->count);
    return bytes;
}

/* What an op needs for itself. */
static void plan_node(nn_exec_t *exec, int i)
{
    nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[i];
    const bool back = node->back;
    const int later = time_backward(exec, i);

    node->workspace =
        block_add(exec, op_workspace_bytes(node->op), i, back ? later : i);
    node->scratch_forward = block_add(exec, op_scratch_bytes(node->op), i, i);
    node->scratch_backward = NN_NONE;
    node->moments = NN_NONE;
    node->fresh = NN_NONE;
    if (layer->kind->moments && exec->config.training)
        node->moments = block_add(
            exec, 2 * sizeof(double) * (size_t)layer->config.in.dims[1], i, i);
    if (!back)
        return;
    node->scratch_backward =
        block_add(exec, op_scratch_bytes(node->op), later, later);
    node->fresh =
        block_add(exec, fresh_bytes(exec->graph, layer), later, later);
}

err_code_t nn_exec_plan(nn_exec_t *exec, err_t *err)
{
    const int last = exec->count - 1;
    const int end = 2 * exec->count - 1;
    size_t room = (size_t)exec->count * BLOCKS_PER_NODE + BLOCKS_PER_EXEC;
    void *block;
    err_code_t code;

    code = mem_alloc(room * sizeof *exec->blocks, "a memory plan", &block, err);
    if (code != ERR_OK)
        return code;
    exec->blocks = block;
    for (int i = 0; i < exec->count; i++) {
        exec->nodes[i].y = NN_NONE;
        exec->nodes[i].dy = NN_NONE;
        plan_node(exec, i);
    }
    plan_reads(exec);
    plan_outputs(exec);
    plan_gradients(exec);
    exec->result = block_add(exec, sizeof(nn_result_t), last, last);
    exec->plain_y = NN_NONE;
    exec->plain_scratch = NN_NONE;
    if (exec->plain != NULL) {
        exec->plain_y = block_add(exec, op_out(exec->plain)->bytes, last, end);
        exec->plain_scratch =
            block_add(exec, op_scratch_bytes(exec->plain), last, end);
    }
    return nn_plan_place(exec->blocks, exec->block_count, &exec->bytes, err);
}
