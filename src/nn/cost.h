/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Estimated cost of a plan, and the memory that it saves. Both are counted, not
 * measured. All functions here are pure. */
#ifndef CDDP_NN_COST_H
#define CDDP_NN_COST_H

#include "nn/nn.h"

/* Cost of one batch. [seconds] is the sum over all calls of ops of max(FLOPs /
 * flops_s, bytes / bytes_s) (Williams et al., "Roofline", 2009). Real calls may
 * be faster, as tensors that stay in a cache are read faster than bytes_s. */
typedef struct nn_cost {
    double forward_flops, backward_flops; /* 0 in evaluation */
    double again_flops; /* FLOPs of forwards that run again before backward */
    double seconds,
        compute_seconds; /* the part of seconds from calls that FLOPs limit */
} nn_cost_t;

nn_cost_t nn_exec_cost(const nn_exec_t *exec, double flops_s, double bytes_s);

typedef struct nn_plan_facts {
    int layers;
    int in_place; /* layers whose output overwrites an input */
    int blocked;  /* layers whose output stays in the backend's own layout */
    int bf16;     /* layers that store their output and its gradient as
                     bfloat16 */
    int fused;    /* layers that the call of another layer computes as well */
    int biases;   /* layers whose matrix product or convolution adds the bias
                     itself */
    int bf16_output; /* layers that store their output as bfloat16, but not
                        its gradient */
    int recomputed_blocks, /* blocks that run again before their backward */
        recomputed;        /* layers that run again before their backward */
    size_t kept;    /* bytes of regions in use from forward to backward */
    size_t apart;   /* bytes of the arena if no two regions shared memory */
    size_t scratch; /* bytes of the op that needs most for one call, such as the
                       workspace of a library */
} nn_plan_facts_t;

nn_plan_facts_t nn_exec_facts(const nn_exec_t *exec);

/* What the plan decided for one layer. */
typedef struct nn_layer_plan {
    int joined;   /* the layer whose call computes this one as well; -1: it has
                     its own call */
    bool blocked; /* its output stays in the backend's own layout */
    op_type_t stored_as, /* storage type of the output */
        grad_stored_as;  /* storage type of the output's gradient */
    bool in_place;       /* its output overwrites its first input */
    bool bias; /* the matrix product or convolution adds the bias itself */
    bool recomputed; /* runs again before the backward of its block */
    int block; /* number of its block of layers, from 1 to recomputed_blocks + 1
                */
    const char *note; /* see op_note; NULL: none */
} nn_layer_plan_t;

nn_layer_plan_t nn_exec_layer_plan(const nn_exec_t *exec, int layer);

#endif
