/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Cost of a batch, counted over the plan. Backward of an op with weights counts
 * as two matrix products of the size of its forward, or one if dx is not
 * needed. Backward of any other op counts as its forward. Bytes are those of
 * the tensors that a call reads and writes, each counted once. A view moves
 * none.
 */
#include "nn/cost.h"

#include "nn/exec_priv.h"

/* Floating-point operations of one call, and bytes that it moves. */
typedef struct call {
    double flops, bytes;
} call_t;

static void call_add(call_t call, double flops_s, double bytes_s,
                     nn_cost_t *cost)
{
    double compute = call.flops / flops_s, move = call.bytes / bytes_s;

    cost->seconds += compute > move ? compute : move;
    cost->compute_seconds += compute > move ? compute : 0;
}

static double input_bytes(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    double bytes = 0;

    for (int k = 0; k < node->inputs; k++)
        bytes += nn_is_input(node->from[k])
                     ? sizeof(float) * (double)exec->config.batch *
                           (double)nn_sample_elems(
                               k == 0 ? &layer->config.in
                                      : &layer->config.other[k - 1])
                     : (double)op_out(exec->nodes[node->from[k]].op)->bytes;
    return bytes;
}

static call_t forward_call(const nn_exec_t *exec, int i)
{
    const op_t *op = exec->nodes[i].op;
    const nn_layer_t *layer = &exec->graph->layers[exec->nodes[i].own];

    if (op == NULL || layer->kind->view)
        return (call_t){0};
    return (call_t){.flops = op_flops(op),
                    .bytes = input_bytes(exec, i) + (double)op_out(op)->bytes +
                             sizeof(float) * (double)layer->param_elems};
}

static call_t backward_call(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];
    const nn_layer_t *layer = &exec->graph->layers[node->own];
    const bool dx = node->grad[0] != NN_NONE;
    double inputs, out;
    call_t call;

    if (layer->kind->view || !node->back)
        return (call_t){0};
    inputs = input_bytes(exec, i);
    out = (double)op_out(node->op)->bytes;
    call.flops = op_flops(node->op) * (layer->param_count > 0 && dx ? 2 : 1);
    call.bytes = out + 2 * sizeof(float) * (double)layer->param_elems;
    call.bytes += op_reads_x(node->op) ? inputs : 0;
    call.bytes += op_reads_y(node->op) ? out : 0;
    call.bytes += dx ? inputs : 0;
    return call;
}

nn_cost_t nn_exec_cost(const nn_exec_t *exec, double flops_s, double bytes_s)
{
    nn_cost_t cost = {0};

    for (int i = 0; i < exec->count; i++) {
        call_t forward = forward_call(exec, i);
        call_t backward = backward_call(exec, i);

        cost.forward_flops += forward.flops;
        cost.backward_flops += backward.flops;
        call_add(forward, flops_s, bytes_s, &cost);
        call_add(backward, flops_s, bytes_s, &cost);
        if (!exec->nodes[i].redo)
            continue;
        cost.again_flops += forward.flops;
        call_add(forward, flops_s, bytes_s, &cost);
    }
    return cost;
}

/* ---- memory -------------------------------------------------------------- */

/* Does layer [i] overwrite its first input? */
static bool is_in_place(const nn_exec_t *exec, int i)
{
    const nn_node_t *node = &exec->nodes[i];

    return !nn_is_input(node->from[0]) && node->first.y != NN_NONE &&
           node->first.y == exec->nodes[node->from[0]].first.y;
}

static bool adds_bias(const nn_exec_t *exec, int i)
{
    const op_kind_t kind = exec->graph->layers[i].config.kind;

    return exec->graph->layers[i].config.bias &&
           (kind == OP_LINEAR || kind == OP_CONV2D ||
            kind == OP_CONV_TRANSPOSE);
}

nn_layer_plan_t nn_exec_layer_plan(const nn_exec_t *exec, int layer)
{
    const nn_node_t *node = &exec->nodes[layer];
    const nn_node_t *holder =
        node->joined == NN_NONE ? node : &exec->nodes[node->joined];

    if (node->joined != NN_NONE)
        return (nn_layer_plan_t){.joined = node->joined,
                                 .recomputed = holder->redo,
                                 .block = holder->part + 1};
    return (nn_layer_plan_t){.joined = -1,
                             .blocked = op_out(node->op)->layout != NULL,
                             .stored_as = op_desc_storage(op_out(node->op)),
                             .grad_stored_as =
                                 op_desc_storage(op_grad_out(node->op)),
                             .in_place = is_in_place(exec, layer),
                             .bias = adds_bias(exec, node->own),
                             .recomputed = node->redo,
                             .block = node->part + 1,
                             .note = op_note(node->op)};
}

nn_plan_facts_t nn_exec_facts(const nn_exec_t *exec)
{
    nn_plan_facts_t facts = {.layers = exec->graph->layer_count,
                             .recomputed_blocks = exec->parts - 1};

    for (int i = 0; i < facts.layers; i++) {
        const nn_layer_plan_t layer = nn_exec_layer_plan(exec, i);

        facts.in_place += layer.in_place;
        facts.blocked += layer.blocked;
        facts.bf16 += layer.grad_stored_as == OP_BFLOAT16;
        facts.biases += layer.bias;
        facts.bf16_output += layer.stored_as == OP_BFLOAT16 &&
                             layer.grad_stored_as != OP_BFLOAT16;
        facts.recomputed += layer.recomputed;
        facts.fused += layer.joined >= 0;
    }
    for (int i = 0; i < exec->count; i++) {
        const op_t *op = exec->nodes[i].op; /* NULL: another call computes it */
        const size_t scratch = op == NULL ? 0 : op_scratch_bytes(op);

        facts.scratch = scratch > facts.scratch ? scratch : facts.scratch;
    }
    for (int b = 0; b < exec->region_count; b++) {
        const nn_region_t *block = &exec->regions[b];

        facts.apart += block->bytes;
        if (exec->config.training && block->first < exec->count &&
            block->last >= exec->count)
            facts.kept += block->bytes;
    }
    return facts;
}
