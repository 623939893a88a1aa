/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a plan costs, and what it saves: counted, not measured. Pure. */
#ifndef CDDP_NN_COST_H
#define CDDP_NN_COST_H

#include "nn/nn.h"

/* Of one batch. [seconds] is the sum over all calls of ops of max(FLOPs /
 * flops_s, bytes / bytes_s) (Williams et al., "Roofline", 2009); what stays in
 * a cache may beat it. */
typedef struct nn_cost {
    double forward_flops, backward_flops; /* backward 0 in evaluation */
    double again_flops;                   /* of what is computed again */
    double seconds, compute_seconds;      /* those of calls that FLOPs bound */
} nn_cost_t;

nn_cost_t nn_exec_cost(const nn_exec_t *exec, double flops_s, double bytes_s);

typedef struct nn_plan_facts {
    int layers;
    int in_place;    /* layers whose output takes the place of an input */
    int blocked;     /* layers whose output stays in the backend's own layout */
    int bf16;        /* layers that store their output and its gradient as
                        bfloat16 */
    int fused;       /* layers that another one's call computes, too */
    int biases;      /* layers that add theirs inside of their product */
    int bf16_output; /* layers that store their output as bfloat16, but not
                        its gradient */
    int recomputed_blocks, recomputed; /* blocks and layers of them that run
                                          again ahead of their backward */
    size_t kept;  /* bytes that are held from forward to backward */
    size_t apart; /* bytes without any sharing of memory in time */
} nn_plan_facts_t;

nn_plan_facts_t nn_exec_facts(const nn_exec_t *exec);

/* What became of one layer. */
typedef struct nn_layer_plan {
    int joined;   /* the layer whose call computes it, too; else -1 */
    bool blocked; /* its output stays in the backend's own layout */
    op_type_t stored_as, grad_stored_as; /* its output; the gradient of that */
    bool in_place;   /* its output takes the place of its first input */
    bool bias;       /* added inside of its product */
    bool recomputed; /* runs again ahead of its block's backward */
    int block;       /* number of its block, from 1; of how many: facts */
} nn_layer_plan_t;

nn_layer_plan_t nn_exec_layer_plan(const nn_exec_t *exec, int layer);

#endif
