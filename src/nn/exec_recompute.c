/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Activation checkpointing (Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", 2016). A block is a run of layers that follow each other in the
 * list. What a later block reads is kept; everything else of a block is dropped
 * when its forward is over, and computed again, by the same calls on the same
 * numbers, right before its backward. The last block's backward comes at once:
 * it keeps everything.
 *
 * Blocks are about equally large, and cut where the fewest bytes cross: at the
 * end of an iteration of a repeat or of a residual block, where there are any.
 * The planner takes the number of blocks that gives the smallest arena; in a
 * plain chain that is about the square root of its length.
 *
 * Layers that meet other ranks in forward (syncbatchnorm) must not do so twice,
 * and keep what they give.
 */
#include "base/mem.h"
#include "nn/exec_priv.h"

/* Bytes that node [i] leaves for later. */
static size_t node_bytes(const nn_exec_t *exec, int i)
{
    const op_t *op = exec->nodes[i].op;

    return op == NULL ? 0 : op_out(op)->bytes + op_workspace_bytes(op);
}

/* crossing[p]: bytes of outputs that nodes before p give to p and later ones;
 * before[p]: bytes of all nodes before p. Both for p up to exec->count. */
static void count_bytes(const nn_exec_t *exec, size_t *crossing, size_t *before,
                        int *reader)
{
    const int count = exec->count;

    for (int i = 0; i <= count; i++) {
        crossing[i] = 0;
        reader[i] = i;
    }
    before[0] = 0;
    for (int i = 0; i < count; i++) {
        const nn_node_t *node = &exec->nodes[i];

        before[i + 1] = before[i] + node_bytes(exec, i);
        for (int k = 0; k < node->inputs; k++)
            if (!nn_is_input(node->from[k]))
                reader[node->from[k]] = i;
    }
    for (int i = 0; i < count; i++) /* a joined node has no reader */
        for (int p = i + 1; p <= reader[i]; p++)
            crossing[p] += op_out(exec->nodes[i].op)->bytes;
}

static size_t apart(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* The best place for a cut near [target] bytes, behind [after] and before the
 * losses; 0: none. */
static int find_cut(const nn_exec_t *exec, const size_t *crossing,
                    const size_t *before, size_t target, size_t near, int after)
{
    int best = 0;

    for (int p = after + 1; p < nn_exec_first_loss(exec); p++) {
        const size_t off = apart(before[p], target);

        if (off > near)
            continue;
        if (best == 0 || crossing[p] < crossing[best] ||
            (crossing[p] == crossing[best] &&
             off < apart(before[best], target)))
            best = p;
    }
    return best;
}

static void cut_at(nn_exec_t *exec, int from)
{
    for (int i = from; i < exec->count; i++)
        exec->nodes[i].part++;
    exec->parts++;
}

/* Whose output backward or a node that runs again reads, and who runs again:
 * from the last node to the first, so that all readers of a node are known. */
static void choose_redo(nn_exec_t *exec, bool *kept, bool *wanted)
{
    for (int i = exec->count - 1; i >= 0; i--) {
        nn_node_t *node = &exec->nodes[i];

        node->redo = false;
        if (node->op == NULL)
            continue;
        if (node->part == exec->parts - 1 ||
            exec->graph->layers[node->own].config.kind == OP_SYNCBATCHNORM)
            kept[i] = true;
        if (node->back &&
            (op_reads_y(node->op) || op_workspace_bytes(node->op) > 0))
            wanted[i] = true;
        node->redo = wanted[i] && !kept[i];
        for (int k = 0; k < node->inputs; k++) {
            const int from = node->from[k];

            if (nn_is_input(from))
                continue;
            if (node->redo || (node->back && op_reads_x(node->op)))
                wanted[from] = true;
            if (exec->nodes[from].part != node->part)
                kept[from] = true;
        }
    }
}

err_code_t nn_recompute_cut(nn_exec_t *exec, int parts, err_t *err)
{
    const size_t room = (size_t)exec->count + 1;
    size_t *crossing, *before;
    void *block;
    err_code_t code =
        mem_alloc(room * (2 * sizeof(size_t) + sizeof(int) + 2 * sizeof(bool)),
                  "a memory plan", &block, err);
    bool *flags;
    int cut = 0, *reader;

    if (code != ERR_OK)
        return code;
    crossing = block;
    before = crossing + room;
    reader = (int *)(before + room);
    flags = (bool *)(reader + room); /* mem_alloc gives zeros */
    exec->parts = 1;
    for (int i = 0; i < exec->count; i++)
        exec->nodes[i].part = 0;
    if (parts > 1)
        count_bytes(exec, crossing, before, reader);
    for (int b = 1; b < parts; b++) {
        const size_t total = before[exec->count], share = total / (size_t)parts;
        const int at =
            find_cut(exec, crossing, before, share * (size_t)b, share / 2, cut);

        if (at == 0)
            continue;
        cut_at(exec, at);
        cut = at;
    }
    choose_redo(exec, flags, flags + room);
    mem_free(block);
    return ERR_OK;
}

int nn_recompute_start(const nn_exec_t *exec, int node)
{
    int start = node;

    while (start > 0 && exec->nodes[start - 1].part == exec->nodes[node].part)
        start--;
    return start;
}
