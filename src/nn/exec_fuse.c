/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fusing layers into one call: batchnorm and relu; batchnorm, the add of a
 * shortcut and relu; add and relu; linear and gelu or silu. The layers must be
 * neighbours in the list, and no other layer may read a result between them.
 * The last of them, the activation, becomes the node of the call. The others
 * are joined to it and have no op. As the layers are neighbours, gradients
 * become ready in the same order as without fusing.
 *
 * If matrix products are computed in bfloat16, and the backend can, the output
 * of a sample norm, or of a linear layer with activation, is stored as bfloat16
 * if its only reader is a linear layer, which would round it anyway.
 *
 * Fusing changes no bit, with one exception: where tensors are stored as
 * bfloat16 (exec_store.c), intermediate results inside a call are not rounded.
 * linear and conv add their bias themselves, but are not fused with relu, as
 * the relu inside oneDNN's matrix products and convolutions turns NaN into 0.
 */
#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

static op_kind_t kind_of(const nn_exec_t *exec, int node)
{
    return node < 0 ? OP_NONE : exec->graph->layers[node].config.kind;
}

static void node_link(nn_exec_t *exec, int i)
{
    const nn_layer_t *layer = &exec->graph->layers[i];
    nn_node_t *node = &exec->nodes[i];

    node->own = i;
    node->joined = NN_NONE;
    node->inputs = layer->inputs;
    for (int k = 0; k < layer->inputs; k++)
        node->from[k] = layer->from[k];
}

/* Make [node], the only reader of [part], compute [part] as well. [node] then
 * reads the inputs of [part]. */
static void node_join(nn_exec_t *exec, int node, int part)
{
    nn_node_t *to = &exec->nodes[node], *from = &exec->nodes[part];

    check(part < node && from->joined == NN_NONE && to->joined == NN_NONE,
          "node %d joins node %d, which is joined to %d", part, node,
          from->joined);
    check(to->from[0] == part || to->from[1] == part,
          "node %d does not read node %d, which it computes", node, part);
    to->own = part;
    to->inputs = from->inputs;
    for (int k = 0; k < from->inputs; k++)
        to->from[k] = from->from[k];
    from->inputs = 0;
    from->joined = node;
}

/* [node] computes an add. If the add has two inputs and one is a batchnorm
 * right before it that nothing else reads, make [node] compute the batchnorm as
 * well. */
static void join_norm(nn_exec_t *exec, int node, const int *readers)
{
    nn_node_t *to = &exec->nodes[node];
    const int norm = to->own - 1;
    int other;

    if (kind_of(exec, norm) != OP_BATCHNORM || readers[norm] != 1 ||
        to->inputs != 2 || (to->from[0] != norm && to->from[1] != norm))
        return;
    other = to->from[0] == norm ? to->from[1] : to->from[0];
    /* If both inputs of the add came from one tensor, fusing would add the
     * tensor's two gradients in another order. */
    if (other == exec->nodes[norm].from[0])
        return;
    node_join(exec, node, norm);
    to->from[to->inputs++] = other;
}

/* If node [i] can be fused with the layers before it, join these to it. */
static void join_before(nn_exec_t *exec, int i, const int *readers)
{
    const op_kind_t kind = kind_of(exec, i), before = kind_of(exec, i - 1);

    if (exec->nodes[i].from[0] != i - 1 || readers[i - 1] != 1)
        return;
    if (kind == OP_RELU && (before == OP_BATCHNORM || before == OP_ADD) &&
        op_backend_fuses(exec->backend, OP_FUSES_RELU)) {
        node_join(exec, i, i - 1);
        exec->nodes[i].relu = true;
        if (before == OP_ADD)
            join_norm(exec, i, readers);
    } else if ((kind == OP_GELU || kind == OP_GELU_TANH || kind == OP_SILU) &&
               before == OP_LINEAR &&
               op_backend_fuses(exec->backend, OP_FUSES_ACTIVATION)) {
        node_join(exec, i, i - 1);
        exec->nodes[i].activation = kind;
    }
}

/* Would [node] round the output of [from], and can [from] store it rounded? */
static bool takes_rounded(const nn_exec_t *exec, int node, int from)
{
    return kind_of(exec, exec->nodes[node].own) == OP_LINEAR &&
           (op_is_sample_norm(kind_of(exec, exec->nodes[from].own)) ||
            exec->nodes[from].activation != OP_NONE);
}

/* Store outputs as bfloat16 if their only reader is a linear layer. */
static void choose_rounded(nn_exec_t *exec, const int *readers)
{
    for (int i = 0; i < exec->count; i++) {
        const nn_node_t *node = &exec->nodes[i];
        const int from = node->inputs > 0 ? node->from[0] : NN_NONE;

        if (from >= 0 && readers[from] == 1 && takes_rounded(exec, i, from))
            exec->nodes[from].y_stored_as = OP_BFLOAT16;
    }
}

err_code_t nn_exec_link(nn_exec_t *exec, err_t *err)
{
    const bool fuse = !exec->config.unfused;
    int *readers = NULL;
    err_code_t rc =
        mem_new(int, (size_t)exec->count, "a memory plan", &readers, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < exec->count; i++) {
        node_link(exec, i);
        for (int k = 0; k < exec->nodes[i].inputs; k++)
            if (!nn_is_input(exec->nodes[i].from[k]))
                readers[exec->nodes[i].from[k]]++;
    }
    for (int i = 1; i < exec->count && fuse; i++)
        join_before(exec, i, readers);
    if (fuse && exec->config.compute_type == OP_BFLOAT16 &&
        exec->config.training &&
        op_backend_fuses(exec->backend, OP_FUSES_NARROW))
        choose_rounded(exec, readers);
    mem_free(readers);
    return ERR_OK;
}
