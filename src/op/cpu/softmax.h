/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the two forms of cross_entropy share: classes side by side
 * (cross_entropy.c), and classes far apart with positions side by side
 * (softmax_dense.c), which goes through a block of positions at a time. */
#ifndef CDDP_OP_CPU_SOFTMAX_H
#define CDDP_OP_CPU_SOFTMAX_H

#include "op/cpu/math.h"
#include "op/op_ops.h"

/* Positions of a block; at most 255, as their hits are counted in a byte. */
#define CPU_SOFTMAX_BLOCK 64

typedef struct cpu_softmax_work {
    const float *x;
    const int64_t *target; /* [rows] */
    op_classes_t at;
    op_smooth_t smooth;
    const op_loss_t *loss;
    float *kept;    /* [rows,2]: maximum, 1 / sum; NULL in evaluation */
    double *losses; /* [items] */
    uint8_t *hits;  /* [items] */
    float *dx;
    float scale;
} cpu_softmax_work_t;

CPU_INLINE bool cpu_softmax_ignored(const cpu_softmax_work_t *work,
                                    int64_t target)
{
    return work->loss->ignore && target == work->loss->ignored;
}

CPU_INLINE float cpu_softmax_weight(const cpu_softmax_work_t *work, int64_t k)
{
    return work->loss->weights == NULL ? 1.0f : work->loss->weights[k];
}

/* The loss of a row with logit [hit] at its target; [mix] is sum_k w[k] x[k],
 * if it is smoothed. */
CPU_INLINE double cpu_softmax_loss(const cpu_softmax_work_t *work,
                                   int64_t target, double log_sum, double hit,
                                   double mix)
{
    const op_smooth_t *smooth = &work->smooth;
    double weight = (double)cpu_softmax_weight(work, target);
    double loss = smooth->hit * weight * (log_sum - hit);

    return smooth->spread > 0
               ? loss + smooth->spread * (smooth->sum * log_sum - mix)
               : loss;
}

/* Blocks of positions: how many, and the bodies that work on them. */
int64_t cpu_softmax_blocks(const op_classes_t *at);
void cpu_softmax_blocks_forward(void *context, int64_t first, int64_t last);
void cpu_softmax_blocks_backward(void *context, int64_t first, int64_t last);

#endif
