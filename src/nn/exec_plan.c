/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The regions of memory that an exec needs, and when they are in use. Time is
 * counted in calls: the forward of op i is call i. After all forwards come the
 * backward calls and, if blocks of layers are recomputed (exec_recompute.c),
 * the forwards that run again.
 *
 * In training, the inputs, output and workspace that a layer's backward reads
 * are kept until then. The gradient of a tensor is written first by the
 * backward of the tensor's last reader, and read by the backward of the layer
 * that made the tensor. Each other reader writes its gradient to a region of
 * its own, which is then added. An op works in place if it can and if nobody
 * reads what it overwrites. Then several tensors share one region, which is in
 * use as long as any of these tensors.
 */
#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

/* Per node: y, workspace, scratch and moments, twice; scratch and fresh of
 * backward; a gradient for each input. Per exec: the results; for each loss, a
 * plain copy of its input and scratch. */
#define REGIONS_PER_NODE (10 + OP_INPUTS_MAX)
#define REGIONS_PER_EXEC (1 + 2 * NN_FIELDS_MAX)

/* Number the calls. Forward i is call i. Then, from the last block of layers to
 * the first, come the forwards that run again and the backward calls. */
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
    check(time <= 3 * exec->count, "%d calls of %d ops", time, exec->count);
    exec->end = time;
}

static void read_at(nn_pass_t *pass, int time)
{
    if (time > pass->read)
        pass->read = time;
}

/* Note that [node]'s output is read in call [time], after the forward pass. */
static void read_later(nn_node_t *node, int time)
{
    read_at(node->redo ? &node->again : &node->first, time);
}

/* Find the last call that reads each output. */
/* May backward overwrite the inputs of losses? */
static bool consumes(const nn_exec_t *exec)
{
    return exec->config.training && exec->config.consume;
}

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
    /* nn_exec_output may read the inputs of losses after the last call, too. */
    for (int k = 0; k < exec->graph->loss_count; k++)
        read_at(&nodes[nn_exec_loss_from(exec, k)].first,
                consumes(exec) ? exec->count - 1 : exec->end - 1);
}

static int region_room(const nn_exec_t *exec)
{
    return exec->count * REGIONS_PER_NODE + REGIONS_PER_EXEC;
}

static int region_add(nn_exec_t *exec, size_t bytes, int first, int last)
{
    if (bytes == 0)
        return NN_NONE;
    check(first >= 0 && first <= last && last < exec->end,
          "a region in use from call %d to %d of %d", first, last, exec->end);
    check(exec->region_count < region_room(exec), "more than %d regions",
          exec->region_count);
    exec->regions[exec->region_count] = (nn_region_t){
        .bytes = bytes, .first = first, .last = last, .busy = last};
    return exec->region_count++;
}

/* Extend [region] to at least [bytes] bytes, in use from [first] to [last] as
 * well. */
static void region_extend(nn_exec_t *exec, int region, size_t bytes, int first,
                          int last)
{
    nn_region_t *b = &exec->regions[region];

    check(region >= 0 && region < exec->region_count, "region %d of %d", region,
          exec->region_count);
    check(first <= last, "a region in use from call %d to %d", first, last);

    if (bytes > b->bytes)
        b->bytes = bytes;
    if (first < b->first)
        b->first = first;
    if (last > b->last)
        b->last = last;
}

/* The region with [node]'s output: that of the forward pass or, with [again],
 * the one from which calls after the forward pass read it. */
static int *output_of(nn_exec_t *exec, int node, bool again)
{
    nn_node_t *n = &exec->nodes[node];

    return again && n->redo ? &n->again.y : &n->first.y;
}

/* May [node], which runs at [time], overwrite its first input? */
static bool may_overwrite(nn_exec_t *exec, int node, bool again, int time)
{
    const nn_node_t *n = &exec->nodes[node];
    int region;

    if (nn_is_input(n->from[0]) || !op_in_place(n->op))
        return false; /* a graph input is the caller's memory */
    region = *output_of(exec, n->from[0], again);
    for (int k = 1; k < n->inputs; k++)
        if (!nn_is_input(n->from[k]) &&
            *output_of(exec, n->from[k], again) == region)
            return false;
    return exec->graph->layers[node].kind->view ||
           exec->regions[region].busy <= time;
}

/* Choose the region of [node]'s output, which is written at [time] and read
 * last at [read]. */
static void plan_output(nn_exec_t *exec, int node, bool again, int time,
                        int read)
{
    const nn_node_t *n = &exec->nodes[node];
    const size_t bytes = op_out(n->op)->bytes;
    int *y = output_of(exec, node, again);
    int busy;

    if (!may_overwrite(exec, node, again, time)) {
        *y = region_add(exec, bytes, time, read);
        return;
    }
    *y = *output_of(exec, n->from[0], again);
    region_extend(exec, *y, bytes, time, read);
    /* A view leaves its input intact, so its input may still be read. */
    busy = exec->regions[*y].busy;
    exec->regions[*y].busy =
        exec->graph->layers[node].kind->view && busy > read ? busy : read;
}

/* Choose the regions of all outputs, in order of time, as an output may
 * overwrite a region only if no earlier output in it is still read. */
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

/* Does any node after [first] and before [last] read the output of [x]? */
static bool is_read(const nn_exec_t *exec, int x, int first, int last)
{
    bool found = false;

    for (int i = first + 1; i < last; i++)
        for (int k = 0; k < exec->nodes[i].inputs; k++)
            found = found || exec->nodes[i].from[k] == x;
    return found;
}

/*
 * Optimization for an add of two inputs, whose gradients both equal the
 * gradient of the sum: may the gradient of the second input (k = 1) share the
 * region of the sum's gradient?
 *
 * The gradient of the first input may be in this region as well. So no call may
 * change the region before the node that made the second input has run
 * backward, and that node may not work in place. Also, only [node] may read the
 * second input.
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

/* May [node], a loss, write the gradient of its input over the input, which no
 * later call reads? */
static bool may_consume(const nn_exec_t *exec, int node)
{
    const nn_node_t *n = &exec->nodes[node];
    const nn_node_t *from = &exec->nodes[n->from[0]];

    return consumes(exec) && node >= nn_exec_first_loss(exec) &&
           op_over_x(n->op) && !from->redo && !n->adds[0] &&
           exec->regions[from->first.y].busy <= n->later;
}

/* Choose where the gradient of input [k] of [node] is written, and whether it
 * is added to the gradients that other readers have written. */
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
    /* In place: overwrite dy, which no later call reads. */
    if (reader->dy != NN_NONE &&
        (k == 0 ? op_in_place(reader->op)
                : !reader->adds[k] && may_pass(exec, node, k))) {
        reader->grad[k] = reader->dy;
        region_extend(exec, reader->dy, bytes, made, made);
    } else if (k == 0 && may_consume(exec, node)) {
        reader->grad[k] = input->first.y;
        region_extend(exec, input->first.y, bytes, made, made);
    } else {
        reader->grad[k] = region_add(exec, bytes, made, made);
    }
    if (reader->adds[k])
        return;
    input->dy = reader->grad[k];
    region_extend(exec, input->dy, bytes, made, input->later);
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

/* Bytes for a layer's parameter gradients of this batch, before they are added
 * to the gradients of earlier batches. */
static size_t fresh_bytes(const nn_graph_t *graph, const nn_layer_t *layer)
{
    size_t bytes = 0;

    for (int k = 0; k < layer->param_count; k++)
        bytes += mem_round(sizeof(float) *
                           nn_graph_param(graph, layer->params[k])->count);
    return bytes;
}

/* Does node [i] need memory for fresh gradients? It does if its gradients may
 * have to be added to others and its op cannot do that. */
static bool needs_fresh(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];

    return !op_adds(node->op) &&
           !nn_exec_writes_first(exec, node->own, !exec->config.overwrite);
}

/* Choose the regions that only the op itself uses when its forward runs at
 * [time]. Its workspace is read last at [read]. */
static void plan_pass(nn_exec_t *exec, int i, int time, int read,
                      nn_pass_t *pass)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];

    pass->workspace =
        region_add(exec, op_workspace_bytes(node->op), time, read);
    pass->scratch = region_add(exec, op_scratch_bytes(node->op), time, time);
    pass->moments = NN_NONE;
    if (nn_layer_has_moments(layer) && exec->config.training)
        pass->moments = region_add(
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
        region_add(exec, op_scratch_bytes(node->op), node->later, node->later);
    if (needs_fresh(exec, i))
        node->fresh = region_add(exec, fresh_bytes(exec->graph, layer),
                                 node->later, node->later);
}

/* Check that [region], which node [i] uses at [time], is in use then. */
static void use_check(const nn_exec_t *exec, int i, int region, int time)
{
    const nn_region_t *r = &exec->regions[region];

    check(region == NN_NONE || (r->first <= time && time <= r->last),
          "node %d uses region %d in call %d, but it is in use from %d to %d",
          i, region, time, r->first, r->last);
}

/* Check that each region that the backward of node [i] reads or writes is in
 * use then. */
static void backward_check(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];
    const int time = node->later;

    check(i >= nn_exec_first_loss(exec) || node->dy != NN_NONE,
          "node %d runs backward, but no reader gives it a gradient", i);
    use_check(exec, i, node->dy, time);
    use_check(exec, i, node->scratch, time);
    use_check(exec, i, node->fresh, time);
    use_check(exec, i, node->again.workspace, time);
    if (op_reads_y(node->op))
        use_check(exec, i, node->again.y, time);
    check(!node->sums || !node->adds[0],
          "node %d adds its gradient to the input's twice", i);
    for (int k = 0; k < node->inputs; k++) {
        use_check(exec, i, node->grad[k], time);
        if (nn_is_input(node->from[k]))
            continue;
        if (op_reads_x(node->op))
            use_check(exec, i, exec->nodes[node->from[k]].again.y, time);
        check(node->grad[k] == NN_NONE ||
                  exec->nodes[node->from[k]].later > time,
              "node %d gives a gradient to node %d, whose backward is over", i,
              node->from[k]);
    }
}

/* Check that each region that a forward of node [i] reads or writes is in use
 * then. */
static void forward_check(const nn_exec_t *exec, int i, bool again)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_pass_t *pass = again ? &node->again : &node->first;
    const int time = again ? node->at : i;

    check(!again || (node->at >= exec->count && node->at < node->later),
          "node %d runs again in call %d and backward in call %d", i, node->at,
          node->later);
    use_check(exec, i, pass->y, time);
    use_check(exec, i, pass->workspace, time);
    use_check(exec, i, pass->scratch, time);
    use_check(exec, i, pass->moments, time);
    for (int k = 0; k < node->inputs; k++) {
        const nn_node_t *from = &exec->nodes[node->from[k]];

        if (!nn_is_input(node->from[k]))
            use_check(exec, i, again ? from->again.y : from->first.y, time);
    }
}

static void plan_check(const nn_exec_t *exec)
{
    for (int i = 0; CHECK_ON && i < exec->count; i++) {
        const nn_node_t *node = &exec->nodes[i];

        if (node->op == NULL)
            continue;
        forward_check(exec, i, false);
        if (node->redo)
            forward_check(exec, i, true);
        if (node->back)
            backward_check(exec, i);
    }
}

err_code_t nn_exec_plan_parts(nn_exec_t *exec, int parts, err_t *err)
{
    const int last = exec->count - 1;
    err_code_t rc = nn_recompute_cut(exec, parts, err);

    if (rc != ERR_OK)
        return rc;
    exec->region_count = 0;
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
        region_add(exec, (size_t)exec->graph->loss_count * sizeof(nn_result_t),
                   nn_exec_first_loss(exec), last);
    for (int k = 0; k < exec->graph->loss_count; k++) {
        nn_plain_t *plain = &exec->plain[k];

        if (plain->op == NULL)
            continue;
        plain->y =
            region_add(exec, op_out(plain->op)->bytes, last, exec->end - 1);
        plain->scratch =
            region_add(exec, op_scratch_bytes(plain->op), last, exec->end - 1);
    }
    plan_check(exec);
    return nn_plan_place(exec->regions, exec->region_count, &exec->bytes, err);
}

/* Plan with the number of blocks for which the arena is smallest. Blocks of
 * fewer than two layers save nothing, so count / 2 is the maximum. Large
 * numbers are tried in larger steps. */
static err_code_t plan_smallest(nn_exec_t *exec, err_t *err)
{
    err_code_t rc = nn_exec_plan_parts(exec, 1, err);
    size_t bytes = exec->bytes;
    int best = 1;

    for (int parts = 2; parts <= exec->count / 2 && rc == ERR_OK;
         parts += 1 + parts / 8) {
        rc = nn_exec_plan_parts(exec, parts, err);
        if (exec->bytes < bytes) {
            bytes = exec->bytes;
            best = parts;
        }
    }
    return rc == ERR_OK ? nn_exec_plan_parts(exec, best, err) : rc;
}

bool nn_exec_writes_first(const nn_exec_t *exec, int layer, bool accumulate)
{
    const nn_layer_t *layers = exec->graph->layers;

    return !accumulate && layers[layers[layer].owner].last_user == layer;
}

err_code_t nn_exec_plan(nn_exec_t *exec, err_t *err)
{
    err_code_t rc = mem_new(nn_region_t, (size_t)region_room(exec),
                            "a memory plan", &exec->regions, err);

    if (rc != ERR_OK)
        return rc;
    return exec->config.training && exec->config.recompute
               ? plan_smallest(exec, err)
               : nn_exec_plan_parts(exec, 1, err);
}
