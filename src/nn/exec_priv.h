/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the files of an exec share, and nobody else sees: its nodes, and the
 * blocks of its arena. */
#ifndef CDDP_NN_EXEC_PRIV_H
#define CDDP_NN_EXEC_PRIV_H

#include "nn/nn_priv.h"

/* ---- memory plan --------------------------------------------------------- */

/* A block of the arena, in use from time [first] to time [last], both in. */
typedef struct nn_block {
    size_t bytes;
    int first, last;
    int busy;      /* when what it holds at present is read last */
    size_t offset; /* written by nn_plan_place */
} nn_block_t;

/* Place blocks so that two in use at the same time never overlap; offsets are
 * multiples of MEM_ALIGN. Returns the arena's size in bytes through [total]. */
err_code_t nn_plan_place(nn_block_t *blocks, int count, size_t *total,
                         err_t *err);

/* ---- exec ---------------------------------------------------------------- */

#define NN_NONE (-1) /* no such block */

/* What a forward call of an op writes: block numbers; and when y is read last.
 */
typedef struct nn_pass {
    int y, workspace, scratch;
    int moments; /* this batch's sums, before they are added */
    int read;
} nn_pass_t;

/* One op of the graph; dy, grad, scratch and fresh are block numbers, at and
 * later are times. */
typedef struct nn_node {
    op_t *op;
    int joined; /* the node whose call computes it, too, or NN_NONE; a joined
                   node has no op and no inputs */
    bool relu;  /* its call ends with relu, behind the layer's own op */
    op_kind_t activation;  /* the activation that a linear's call ends with;
                              OP_NONE: none */
    op_type_t y_stored_as; /* see op_config_t */
    int own;               /* the layer whose parameters it uses */
    int inputs;            /* earlier nodes, or inputs: see nn_is_input */
    int from[OP_INPUTS_MAX];
    bool back;                /* backward runs through it */
    int part;                 /* its block, when blocks are recomputed */
    bool redo;                /* runs again before its block's backward */
    int at, later;            /* when it runs again; its backward */
    nn_pass_t first, again;   /* again is what backward reads; without redo,
                                 the same as first */
    int dy;                   /* gradient of y */
    int grad[OP_INPUTS_MAX];  /* where the gradient of input k is written; */
    bool adds[OP_INPUTS_MAX]; /* then it is added to the input's dy, in a call
                                 of its own */
    bool sums;   /* that of the first is added while it is computed: grad[0] is
                    the input's dy */
    int scratch; /* of backward */
    int fresh;   /* this batch's parameter gradients, before they are added */
} nn_node_t;

/* What makes a loss's input plain. */
typedef struct nn_plain {
    op_t *op; /* NULL: it is plain */
    int y, scratch;
} nn_plain_t;

struct nn_exec {
    const nn_graph_t *graph;
    nn_exec_config_t config;
    const op_backend_ops_t *backend;
    nn_node_t *nodes; /* layers, then the losses */
    int count;
    int end;   /* time after the last call of a backward */
    int parts; /* blocks; 1: nothing is recomputed */
    nn_plain_t plain[NN_FIELDS_MAX]; /* of what each loss reads */
    int result;                      /* nn_result_t for each loss */
    nn_block_t *blocks;
    int block_count;
    size_t bytes;
    nn_bind_t bind;
};

/* The node that is the first loss; the others follow it. */
static inline int nn_exec_first_loss(const nn_exec_t *exec)
{
    return exec->count - exec->graph->loss_count;
}
/* The node that loss number [loss] reads. */
static inline int nn_exec_loss_from(const nn_exec_t *exec, int loss)
{
    return exec->nodes[nn_exec_first_loss(exec) + loss].from[0];
}

/* Take the nodes' inputs from the graph, and join layers into one call where
 * that saves passes over memory (exec_fuse.c). */
err_code_t nn_exec_link(nn_exec_t *exec, err_t *err);

/* Which outputs may lie as bfloat16: those of ops that can write them so, where
 * all readers can take them (exec_store.c). */
void nn_exec_store(nn_exec_t *exec);

/* Choose and place the blocks of an exec whose ops are open. */
err_code_t nn_exec_plan(nn_exec_t *exec, err_t *err);

/* Plan anew with the nodes in at most [parts] blocks, all but the last of which
 * are recomputed. */
err_code_t nn_exec_plan_parts(nn_exec_t *exec, int parts, err_t *err);

/* ---- recomputing (exec_recompute.c) -------------------------------------- */

/* Cut the nodes into at most [parts] blocks (nn_node_t.part), and say which run
 * again. */
err_code_t nn_recompute_cut(nn_exec_t *exec, int parts, err_t *err);
/* The first node of the block of [node]. */
int nn_recompute_start(const nn_exec_t *exec, int node);

/* Is this layer's backward the first to write its parameters' gradients? */
bool nn_exec_writes_first(const nn_exec_t *exec, int layer, bool accumulate);

#endif
