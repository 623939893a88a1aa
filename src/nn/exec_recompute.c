/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Activation checkpointing (Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", 2016). A block is a sequence of layers in the order of the
 * list. Outputs that a later block reads are kept. All other outputs of a block
 * are freed when its forward is over, and are computed again right before its
 * backward, by the same calls on the same numbers. The last block keeps all
 * outputs, as its backward follows at once.
 *
 * Blocks have about equal sizes, and are cut where the fewest bytes cross: for
 * example at the end of a residual block or of an iteration of repeat. The
 * planner chooses the number of blocks with the smallest arena. In a plain
 * chain that is about the square root of the chain's length.
 *
 * syncbatchnorm communicates with other ranks in forward. It must not do so
 * twice, so its output is kept.
 */
#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

/* Bytes that the forward of node [i] writes for later calls: output and
 * workspace. */
static size_t node_bytes(const nn_exec_t *exec, int i)
{
    const op_t *op = exec->nodes[i].op;

    return op == NULL ? 0 : op_out(op)->bytes + op_workspace_bytes(op);
}

/* Facts on node p and on a cut before it, for p from 0 to exec->count. */
typedef struct place {
    size_t crossing; /* bytes of outputs that cross the cut */
    size_t before;   /* node_bytes of all nodes before the cut */
    int reader;      /* the last node that reads the output of node p */
    bool kept;       /* the output of node p is kept from forward to backward */
    bool wanted; /* a backward, or a node that runs again, reads the output of
                    node p */
} place_t;

static void count_bytes(const nn_exec_t *exec, place_t *places)
{
    const int count = exec->count;

    for (int i = 0; i <= count; i++)
        places[i].reader = i;
    for (int i = 0; i < count; i++) {
        const nn_node_t *node = &exec->nodes[i];

        places[i + 1].before = places[i].before + node_bytes(exec, i);
        for (int k = 0; k < node->inputs; k++)
            if (!nn_is_input(node->from[k]))
                places[node->from[k]].reader = i;
    }
    for (int i = 0; i < count; i++) { /* a joined node has no reader */
        check(places[i].reader == i || exec->nodes[i].op != NULL,
              "node %d without an op is read by node %d", i, places[i].reader);
        for (int p = i + 1; p <= places[i].reader; p++)
            places[p].crossing += op_out(exec->nodes[i].op)->bytes;
    }
}

static size_t apart(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* The best place for a cut about [target] bytes from the start, at most [near]
 * bytes off, after the cut [after] and before the losses. 0: there is none. */
static int find_cut(const nn_exec_t *exec, const place_t *places, size_t target,
                    size_t near, int after)
{
    int best = 0;

    for (int p = after + 1; p < nn_exec_first_loss(exec); p++) {
        const size_t off = apart(places[p].before, target);

        if (off > near)
            continue;
        if (best == 0 || places[p].crossing < places[best].crossing ||
            (places[p].crossing == places[best].crossing &&
             off < apart(places[best].before, target)))
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

/* Decide which nodes run again. Go from the last node to the first, so that all
 * readers of a node are known. */
static void choose_redo(nn_exec_t *exec, place_t *places)
{
    for (int i = exec->count - 1; i >= 0; i--) {
        nn_node_t *node = &exec->nodes[i];

        node->redo = false;
        if (node->op == NULL)
            continue;
        if (node->part == exec->parts - 1 ||
            exec->graph->layers[node->own].config.kind == OP_SYNCBATCHNORM)
            places[i].kept = true;
        if (node->back &&
            (op_reads_y(node->op) || op_workspace_bytes(node->op) > 0))
            places[i].wanted = true;
        node->redo = places[i].wanted && !places[i].kept;
        for (int k = 0; k < node->inputs; k++) {
            const int from = node->from[k];

            if (nn_is_input(from))
                continue;
            if (node->redo || (node->back && op_reads_x(node->op)))
                places[from].wanted = true;
            if (exec->nodes[from].part != node->part)
                places[from].kept = true;
        }
    }
}

/* Check that each node that runs again finds its inputs: they are kept, or run
 * again earlier in its own block. */
static void redo_check(const nn_exec_t *exec)
{
    for (int i = 0; CHECK_ON && i < exec->count; i++) {
        const nn_node_t *node = &exec->nodes[i];

        check(node->part >= 0 && node->part < exec->parts,
              "node %d is in block %d of %d", i, node->part, exec->parts);
        check(i == 0 || node->part - exec->nodes[i - 1].part <= 1,
              "node %d is in block %d, the one before it in %d", i, node->part,
              exec->nodes[i - 1].part);
        check(!node->redo || (node->op != NULL && node->part < exec->parts - 1),
              "node %d of the last block, or without an op, runs again", i);
        for (int k = 0; k < node->inputs; k++) {
            const int from = node->from[k];

            check(nn_is_input(from) || (from < i && node->joined == NN_NONE),
                  "node %d reads node %d", i, from);
            check(nn_is_input(from) || !exec->nodes[from].redo ||
                      exec->nodes[from].part == node->part,
                  "node %d of block %d reads node %d, which runs again with "
                  "block %d",
                  i, node->part, from, exec->nodes[from].part);
        }
    }
}

err_code_t nn_recompute_cut(nn_exec_t *exec, int parts, err_t *err)
{
    place_t *places = NULL;
    err_code_t rc = mem_new(place_t, (size_t)exec->count + 1, "a memory plan",
                            &places, err);
    int cut = 0;

    if (rc != ERR_OK)
        return rc;
    exec->parts = 1;
    for (int i = 0; i < exec->count; i++)
        exec->nodes[i].part = 0;
    if (parts > 1)
        count_bytes(exec, places);
    for (int b = 1; b < parts; b++) {
        const size_t share = places[exec->count].before / (size_t)parts;
        const int at =
            find_cut(exec, places, share * (size_t)b, share / 2, cut);

        if (at == 0)
            continue;
        check(at > cut && at < exec->count, "a cut at %d after one at %d", at,
              cut);
        cut_at(exec, at);
        cut = at;
    }
    choose_redo(exec, places);
    redo_check(exec);
    mem_free(places);
    return ERR_OK;
}

int nn_recompute_start(const nn_exec_t *exec, int node)
{
    int start = node;

    while (start > 0 && exec->nodes[start - 1].part == exec->nodes[node].part)
        start--;
    return start;
}
