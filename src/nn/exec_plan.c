/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which blocks of memory an exec needs, and when. Time is counted in calls: op
 * i's forward is time i; after all of them come the backward calls and, if
 * blocks of layers are recomputed (exec_recompute.c), those that run again.
 *
 * In training, what a layer's backward reads (inputs, output, workspace) lives
 * until then. A gradient lives from the backward that writes it first, that of
 * the tensor's last reader, to the backward of the layer that made the tensor;
 * other readers write beside it and their part is added. Ops that can work in
 * place do, where nobody needs what they overwrite; then several values share
 * one block, which lives as long as all of them.
 */
#include "base/mem.h"
#include "nn/exec_priv.h"

/* y, workspace, scratch, moments, twice; scratch and fresh of backward, and a
 * gradient for each input; and per exec: results, plain outputs and their
 * scratch. */
#define BLOCKS_PER_NODE (10 + OP_INPUTS_MAX)
#define BLOCKS_PER_EXEC (1 + 2 * NN_FIELDS_MAX)

/* When do calls run? Forward i at time i; then, from the last block of layers
 * to the first, what runs again and backward. */
static void plan_times(nn_exec_t *exec)
{
    int time = exec->count, last = exec->count - 1;

    while (last >= 0) {
        const int start = nn_recompute_start(exec, last);

        for (int i = start; i <= last; i++)
            if (exec->nodes[i].redo)
                exec->nodes[i].at = time++;
        for (int i = last; i >= start; i--)
            exec->nodes[i].later = time++;
        last = start - 1;
    }
    exec->end = time;
}

static void read_at(nn_pass_t *pass, int time)
{
    if (time > pass->read)
        pass->read = time;
}

/* [node]'s output is read in the second half of a step. */
static void read_later(nn_node_t *node, int time)
{
    read_at(node->redo ? &node->again : &node->first, time);
}

/* When is each output read last? */
static void plan_reads(nn_exec_t *exec)
{
    nn_node_t *nodes = exec->nodes;

    for (int i = 0; i < exec->count; i++) {
        nn_node_t *node = &nodes[i];

        node->first.read = i;
        node->again.read = node->at;
        if (node->op == NULL)
            continue;
        if (node->back && op_reads_y(node->op))
            read_later(node, node->later);
        for (int k = 0; k < node->inputs; k++) {
            if (nn_is_input(node->from[k]))
                continue;
            read_at(&nodes[node->from[k]].first, i);
            if (node->redo)
                read_later(&nodes[node->from[k]], node->at);
            if (node->back && op_reads_x(node->op))
                read_later(&nodes[node->from[k]], node->later);
        }
    }
    /* nn_exec_output may be asked for them at any time. */
    for (int k = 0; k < exec->graph->loss_count; k++)
        read_at(&nodes[nn_exec_loss_from(exec, k)].first, exec->end - 1);
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

/* Which block holds what [node] gives to those that run [again]? */
static int *output_of(nn_exec_t *exec, int node, bool again)
{
    nn_node_t *n = &exec->nodes[node];

    return again && n->redo ? &n->again.y : &n->first.y;
}

/* May [node], which runs at [time], write over its first input? */
static bool may_overwrite(nn_exec_t *exec, int node, bool again, int time)
{
    const nn_node_t *n = &exec->nodes[node];
    int block;

    if (nn_is_input(n->from[0]) || !op_in_place(n->op))
        return false; /* the graph's input is not ours */
    block = *output_of(exec, n->from[0], again);
    for (int k = 1; k < n->inputs; k++)
        if (!nn_is_input(n->from[k]) &&
            *output_of(exec, n->from[k], again) == block)
            return false;
    return exec->graph->layers[node].kind->view ||
           exec->blocks[block].busy <= time;
}

/* Where [node]'s output goes at [time], and until [read] it is read. */
static void plan_output(nn_exec_t *exec, int node, bool again, int time,
                        int read)
{
    const nn_node_t *n = &exec->nodes[node];
    const size_t bytes = op_out(n->op)->bytes;
    int *y = output_of(exec, node, again);
    int busy;

    if (!may_overwrite(exec, node, again, time)) {
        *y = block_add(exec, bytes, time, read);
        return;
    }
    *y = *output_of(exec, n->from[0], again);
    block_extend(exec, *y, bytes, time, read);
    /* A view's input is still there, too. */
    busy = exec->blocks[*y].busy;
    exec->blocks[*y].busy =
        exec->graph->layers[node].kind->view && busy > read ? busy : read;
}

/* In order of time, as each looks at who still reads what it may overwrite. */
static void plan_outputs(nn_exec_t *exec)
{
    nn_node_t *nodes = exec->nodes;
    int start;

    for (int i = 0; i < nn_exec_first_loss(exec); i++)
        if (nodes[i].op != NULL)
            plan_output(exec, i, false, i, nodes[i].first.read);
    for (int last = exec->count - 1; last >= 0; last = start - 1) {
        start = nn_recompute_start(exec, last);
        for (int i = start; i <= last; i++)
            if (nodes[i].redo)
                plan_output(exec, i, true, nodes[i].at, nodes[i].again.read);
    }
}

/* Does any node in (first, last) read what [x] gives? */
static bool is_read(const nn_exec_t *exec, int x, int first, int last)
{
    bool found = false;

    for (int i = first + 1; i < last; i++)
        for (int k = 0; k < exec->nodes[i].inputs; k++)
            found = found || exec->nodes[i].from[k] == x;
    return found;
}

/*
 * [node] adds two tensors: may the gradient of the second be read where that of
 * the sum lies? The first one's is there, too, if anybody wants it. So nobody
 * may change that block until the second's maker has run backward, and that one
 * neither; and only [node] may read the second.
 */
static bool may_pass(const nn_exec_t *exec, int node, int k)
{
    const nn_node_t *n = &exec->nodes[node];
    const int from = n->from[k], other = n->from[0];

    if (k != 1 || n->inputs != 2 || n->dy == NN_NONE || other == from ||
        !op_passes_dy(n->op) || op_in_place(exec->nodes[from].op) ||
        is_read(exec, from, -1, node) || is_read(exec, from, node, exec->count))
        return false;
    return n->grad[0] == NN_NONE ||
           (n->grad[0] == n->dy && !n->adds[0] && other < from &&
            !is_read(exec, other, from, node));
}

/* The gradient of input [k] of [node]: where it is written, and whether it is
 * added to what other readers have written. */
static void plan_input(nn_exec_t *exec, int node, int k)
{
    nn_node_t *reader = &exec->nodes[node];
    const int from = reader->from[k], made = reader->later;
    nn_node_t *input;
    size_t bytes;

    reader->grad[k] = NN_NONE;
    if (nn_is_input(from) || !exec->nodes[from].back)
        return;
    input = &exec->nodes[from];
    bytes = op_grad_out(input->op)->bytes;
    reader->adds[k] = input->dy != NN_NONE;
    if (reader->adds[k] && k == 0 && op_adds_dx(reader->op) &&
        reader->dy != input->dy) {
        reader->adds[k] = false;
        reader->sums = true;
        reader->grad[k] = input->dy;
        return;
    }
    /* In place, over the gradient that has been eaten with this. */
    if (reader->dy != NN_NONE &&
        (k == 0 ? op_in_place(reader->op)
                : !reader->adds[k] && may_pass(exec, node, k))) {
        reader->grad[k] = reader->dy;
        block_extend(exec, reader->dy, bytes, made, made);
    } else {
        reader->grad[k] = block_add(exec, bytes, made, made);
    }
    if (reader->adds[k])
        return;
    input->dy = reader->grad[k];
    block_extend(exec, input->dy, bytes, made, input->later);
}

static void plan_gradients(nn_exec_t *exec)
{
    for (int i = exec->count - 1; i >= 0; i--) {
        exec->nodes[i].sums = false;
        for (int k = 0; k < exec->nodes[i].inputs; k++) {
            exec->nodes[i].adds[k] = false;
            exec->nodes[i].grad[k] = NN_NONE;
            if (exec->nodes[i].back)
                plan_input(exec, i, k);
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

/* May node [i] add its gradients to others, and not do that by itself? */
static bool needs_fresh(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];

    return !op_adds(node->op) &&
           !nn_exec_writes_first(exec, node->own, !exec->config.anew);
}

/* What an op needs for itself when its forward runs at [time]; its workspace is
 * read until [read]. */
static void plan_pass(nn_exec_t *exec, int i, int time, int read,
                      nn_pass_t *pass)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];

    pass->workspace = block_add(exec, op_workspace_bytes(node->op), time, read);
    pass->scratch = block_add(exec, op_scratch_bytes(node->op), time, time);
    pass->moments = NN_NONE;
    if (nn_layer_has_moments(layer) && exec->config.training)
        pass->moments = block_add(
            exec, 2 * sizeof(double) * (size_t)layer->config.in.dims[1], time,
            time);
}

static void plan_node(nn_exec_t *exec, int i)
{
    nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    const bool back = node->back;

    node->first.y = node->again.y = NN_NONE;
    node->dy = NN_NONE;
    node->scratch = NN_NONE;
    node->fresh = NN_NONE;
    if (node->op == NULL)
        return;
    plan_pass(exec, i, i, back && !node->redo ? node->later : i, &node->first);
    if (node->redo)
        plan_pass(exec, i, node->at, back ? node->later : node->at,
                  &node->again);
    if (!back)
        return;
    node->scratch =
        block_add(exec, op_scratch_bytes(node->op), node->later, node->later);
    if (needs_fresh(exec, i))
        node->fresh = block_add(exec, fresh_bytes(exec->graph, layer),
                                node->later, node->later);
}

err_code_t nn_exec_plan_parts(nn_exec_t *exec, int parts, err_t *err)
{
    const int last = exec->count - 1;
    err_code_t code = nn_recompute_cut(exec, parts, err);

    if (code != ERR_OK)
        return code;
    exec->block_count = 0;
    plan_times(exec);
    for (int i = 0; i < exec->count; i++)
        plan_node(exec, i);
    plan_reads(exec);
    plan_outputs(exec);
    plan_gradients(exec);
    for (int i = 0; i < exec->count; i++)
        if (!exec->nodes[i].redo)
            exec->nodes[i].again = exec->nodes[i].first;
    exec->result =
        block_add(exec, (size_t)exec->graph->loss_count * sizeof(nn_result_t),
                  nn_exec_first_loss(exec), last);
    for (int k = 0; k < exec->graph->loss_count; k++) {
        nn_plain_t *plain = &exec->plain[k];

        if (plain->op == NULL)
            continue;
        plain->y =
            block_add(exec, op_out(plain->op)->bytes, last, exec->end - 1);
        plain->scratch =
            block_add(exec, op_scratch_bytes(plain->op), last, exec->end - 1);
    }
    return nn_plan_place(exec->blocks, exec->block_count, &exec->bytes, err);
}

/* The number of blocks with which the arena is smallest. More than one block
 * for two layers saves nothing; larger numbers are tried in larger steps. */
static err_code_t plan_smallest(nn_exec_t *exec, err_t *err)
{
    err_code_t code = nn_exec_plan_parts(exec, 1, err);
    size_t bytes = exec->bytes;
    int best = 1;

    for (int parts = 2; parts <= exec->count / 2 && code == ERR_OK;
         parts += 1 + parts / 8) {
        code = nn_exec_plan_parts(exec, parts, err);
        if (exec->bytes < bytes) {
            bytes = exec->bytes;
            best = parts;
        }
    }
    return code == ERR_OK ? nn_exec_plan_parts(exec, best, err) : code;
}

bool nn_exec_writes_first(const nn_exec_t *exec, int layer, bool accumulate)
{
    const nn_layer_t *layers = exec->graph->layers;

    return !accumulate && layers[layers[layer].owner].last_user == layer;
}

err_code_t nn_exec_plan(nn_exec_t *exec, err_t *err)
{
    size_t room = (size_t)exec->count * BLOCKS_PER_NODE + BLOCKS_PER_EXEC;
    void *block;
    err_code_t code;

    code = mem_alloc(room * sizeof *exec->blocks, "a memory plan", &block, err);
    if (code != ERR_OK)
        return code;
    exec->blocks = block;
    return exec->config.training && exec->config.recompute
               ? plan_smallest(exec, err)
               : nn_exec_plan_parts(exec, 1, err);
}
