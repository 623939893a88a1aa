/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which blocks an exec needs, and when. With the loss as op number L, time is
 * counted in calls: op i's forward is time i, its backward time 2L + 1 - i.
 *
 * In training, what a layer's backward reads (input, output, workspace) lives
 * until then. A gradient lives from the backward that makes it to the next one,
 * which eats it. Ops that can work in place do, where nobody needs what they
 * overwrite; then several values share one block, which lives as long as all of
 * them.
 */
#include "base/mem.h"
#include "nn/nn_priv.h"

/* y, dy, workspace, 2 scratch, moments, fresh; and per exec: result, plain
 * output and its scratch. */
#define BLOCKS_PER_NODE 7
#define BLOCKS_PER_EXEC 3

static int time_backward(const nn_exec_t *exec, int node)
{
    return 2 * exec->count - 1 - node;
}

/* Does backward run through [node]? */
static bool runs_backward(const nn_exec_t *exec, int node)
{
    return exec->config.training && node >= exec->first;
}

/* When is the output of [node] read last? */
static int time_read_last(const nn_exec_t *exec, int node)
{
    if (runs_backward(exec, node) && op_reads_y(exec->nodes[node].op))
        return time_backward(exec, node);
    if (runs_backward(exec, node + 1) && op_reads_x(exec->nodes[node + 1].op))
        return time_backward(exec, node + 1);
    return node + 1;
}

static int block_add(nn_exec_t *exec, size_t bytes, int first, int last)
{
    if (bytes == 0)
        return NN_NONE;
    exec->blocks[exec->block_count] =
        (nn_block_t){.bytes = bytes, .first = first, .last = last};
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

/* May [node] overwrite its input? [kept]: an op before it that wrote into the
 * same block reads it again in its backward. */
static bool may_overwrite(const nn_exec_t *exec, int node, bool kept)
{
    const op_t *op = exec->nodes[node].op;

    if (node == 0 || !op_in_place(op)) /* the graph's input is not ours */
        return false;
    if (exec->graph->layers[node].kind->view)
        return true;
    return !kept && !(runs_backward(exec, node) && op_reads_x(op));
}

static void plan_outputs(nn_exec_t *exec)
{
    const int last = exec->count - 2;
    bool kept = false;

    for (int i = 0; i <= last; i++) {
        nn_node_t *node = &exec->nodes[i];
        size_t bytes = op_out(node->op)->bytes;
        int read = time_read_last(exec, i);

        if (may_overwrite(exec, i, kept)) {
            node->y = exec->nodes[i - 1].y;
            block_extend(exec, node->y, bytes, i, read);
        } else {
            node->y = block_add(exec, bytes, i, read);
            kept = false;
        }
        kept = kept || (runs_backward(exec, i) && op_reads_y(node->op));
    }
    /* nn_exec_output may be asked for it at any time. */
    block_extend(exec, exec->nodes[last].y, 0, last, 2 * exec->count - 1);
}

/* The gradients of the outputs: nodes[i].dy is made by op i + 1. */
static void plan_gradients(nn_exec_t *exec)
{
    for (int i = exec->count - 2; i >= exec->first; i--) {
        nn_node_t *node = &exec->nodes[i], *next = node + 1;
        size_t bytes = op_out(node->op)->bytes;
        int made = time_backward(exec, i + 1), eaten = time_backward(exec, i);

        if (i + 2 < exec->count && op_in_place(next->op)) {
            node->dy = next->dy;
            block_extend(exec, node->dy, bytes, made, eaten);
        } else {
            node->dy = block_add(exec, bytes, made, eaten);
        }
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
    const bool back = runs_backward(exec, i);
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
    plan_outputs(exec);
    if (exec->config.training)
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
