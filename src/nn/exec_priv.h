/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shared by the files of nn that plan and run an exec: its nodes, and the
 * regions of its arena. */
#ifndef CDDP_NN_EXEC_PRIV_H
#define CDDP_NN_EXEC_PRIV_H

#include "nn/nn_priv.h"

/* ---- memory plan --------------------------------------------------------- */

/* A region of the arena, in use from call [first] to call [last], both
 * included. */
typedef struct nn_region {
    size_t bytes;
    int first, last;
    int busy; /* the last call that reads the tensor that is in the region now
               */
    size_t offset; /* written by nn_plan_place */
} nn_region_t;

/* Place regions so that two in use at the same time never overlap. Offsets are
 * multiples of MEM_ALIGN. [total] is the size of the arena in bytes. */
err_code_t nn_plan_place(nn_region_t *regions, int count, size_t *total,
                         err_t *err);

/* ---- exec ---------------------------------------------------------------- */

#define NN_NONE (-1) /* no region, no node */

/* Regions that one forward call of an op writes. */
typedef struct nn_pass {
    int y, workspace, scratch; /* see op_args_t */
    int moments; /* batch-norm sums of this batch, before they are added to the
                    step's */
    int read;    /* the last call that reads y */
} nn_pass_t;

/* One op of the graph. The members y, dy, grad, scratch and fresh are numbers
 * of regions; at and later are numbers of calls (exec_plan.c). */
typedef struct nn_node {
    op_t *op;
    int joined; /* the node whose call computes this one as well, so that this
                   one has no op and no inputs; NN_NONE: it has its own call */
    bool relu;  /* the call applies relu to its result */
    op_kind_t activation;  /* the activation that a linear layer applies to its
                              result, or OP_NONE */
    op_type_t y_stored_as; /* see op_config_t */
    int own; /* the layer whose row in graph->layers configures the op: the
                first of the layers that the call computes */
    int inputs;
    int from[OP_INPUTS_MAX];  /* earlier nodes, or inputs: see nn_is_input */
    bool back;                /* backward runs through it */
    int part;                 /* number of its block of layers, from 0 */
    bool redo;                /* runs again before the backward of its block */
    int at;                   /* with redo: the call in which it runs again */
    int later;                /* the call of its backward */
    nn_pass_t first, again;   /* backward reads the regions of [again], which
                                 equals [first] without redo */
    int dy;                   /* gradient of y */
    int grad[OP_INPUTS_MAX];  /* region to which backward writes the gradient of
                                 input k */
    bool adds[OP_INPUTS_MAX]; /* after backward, op_add adds region grad[k] to
                                 dy of the node that made input k */
    bool sums; /* backward itself adds the gradient of input 0 to dy of the node
                  that made it; grad[0] is that region */
    int scratch; /* for backward */
    int fresh;   /* parameter gradients of this batch, before they are added to
                    those of earlier batches or users */
} nn_node_t;

/* Copy of a loss's input in plain layout. */
typedef struct nn_plain {
    op_t *op; /* copies the input; NULL: the input is plain already */
    int y, scratch;
} nn_plain_t;

struct nn_exec {
    const nn_graph_t *graph;
    nn_exec_config_t config;
    const op_backend_ops_t *backend;
    nn_node_t *nodes; /* those of the layers, then those of the losses */
    int count;        /* number of nodes */
    int end;          /* number of calls of a forward and a backward */
    int parts;        /* blocks of layers; 1: nothing is recomputed */
    nn_plain_t plain[NN_FIELDS_MAX]; /* for each loss */
    int result; /* number of the region with an nn_result_t for each loss */
    nn_region_t *regions;
    int region_count;
    size_t bytes; /* size of the arena */
    nn_bind_t bind;
};

/* The node of the first loss. The other losses follow it. */
static inline int nn_exec_first_loss(const nn_exec_t *exec)
{
    return exec->count - exec->graph->loss_count;
}
/* The node whose output loss number [loss] reads. */
static inline int nn_exec_loss_from(const nn_exec_t *exec, int loss)
{
    return exec->nodes[nn_exec_first_loss(exec) + loss].from[0];
}

/* Copy the nodes' inputs from the graph, and join layers into one call where
 * that saves passes over memory (exec_fuse.c). */
err_code_t nn_exec_link(nn_exec_t *exec, err_t *err);

/* Decide which outputs are stored as bfloat16: those of ops that can write them
 * so, where all readers can read them (exec_store.c). */
void nn_exec_store(nn_exec_t *exec);

/* Choose the regions of an exec whose ops are open, and place them in the
 * arena. */
err_code_t nn_exec_plan(nn_exec_t *exec, err_t *err);

/* Plan again, with the nodes divided into at most [parts] blocks. All blocks
 * but the last are recomputed. */
err_code_t nn_exec_plan_parts(nn_exec_t *exec, int parts, err_t *err);

/* ---- recomputing (exec_recompute.c) -------------------------------------- */

/* Divide the nodes into at most [parts] blocks (nn_node_t.part), and decide
 * which of them run again. */
err_code_t nn_recompute_cut(nn_exec_t *exec, int parts, err_t *err);
/* The first node of the block that [node] is in. */
int nn_recompute_start(const nn_exec_t *exec, int node);

/* Does this layer's backward write the gradients of its parameters, rather than
 * add to gradients that are already there? */
bool nn_exec_writes_first(const nn_exec_t *exec, int layer, bool accumulate);

#endif
