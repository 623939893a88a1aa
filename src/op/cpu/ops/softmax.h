/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the forms of cross_entropy share: classes side by side
 * (cross_entropy.c), and classes far apart with positions side by side
 * (softmax_dense.c), which goes through a block of positions at a time; and
 * both for targets that are probabilities (softmax_soft.c). */
#ifndef CDDP_OP_CPU_OPS_SOFTMAX_H
#define CDDP_OP_CPU_OPS_SOFTMAX_H

#include "op/op_loss.h"
#include "op/op_ops.h"
#include "simd/math.h"

/* Positions of a block; at most 255, as their hits are counted in a byte. */
#define CPU_SOFTMAX_BLOCK 64

typedef struct cpu_softmax_work {
    const float *x;
    const int64_t *target; /* [rows]; OP_CROSS_ENTROPY_SOFT: NULL */
    const float *soft;     /* OP_CROSS_ENTROPY_SOFT: probabilities, as x lies */
    op_classes_t at;
    op_smooth_t smooth;
    const op_loss_t *loss;
    float *kept;    /* [rows,2]: maximum, and 1 / sum of the exponentials (soft:
                       total / sum, see softmax_soft.c); NULL in evaluation */
    double *losses; /* [items] */
    uint8_t *hits;  /* [items] */
    float *dx;
    float scale;
} cpu_softmax_work_t;

SIMD_INLINE bool cpu_softmax_ignored(const cpu_softmax_work_t *work,
                                     int64_t target)
{
    return work->loss->ignore && target == work->loss->ignored;
}

SIMD_INLINE float cpu_softmax_weight(const cpu_softmax_work_t *work, int64_t k)
{
    return work->loss->weights == NULL ? 1.0f : work->loss->weights[k];
}

/* The loss of a row with logit [hit] at its target; [mix] is sum_k w[k] x[k],
 * if it is smoothed. */
SIMD_INLINE double cpu_softmax_loss(const cpu_softmax_work_t *work,
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

/* Maximum, and sum of exp(x - top), of each of [n] rows x [n,K]; and dx =
 * exp(x - top) factor. [n] is at most SIMD_LANES; top, sum and factor are
 * arrays of SIMD_LANES, all of them initialised where they are read. */
void cpu_softmax_sums(const float *x, int64_t K, int64_t n, float *top,
                      float *sum);
void cpu_softmax_slopes(const float *x, float *dx, int64_t K, int64_t n,
                        const float *top, const float *factor);

/* Called for row [n] with its maximum and its sum of exponentials. */
typedef void cpu_softmax_finish_t(const cpu_softmax_work_t *work, int64_t n,
                                  float top, float sum);

/* Rows [first, last): their sums, and [finish] for each of them. */
void cpu_softmax_rows_forward(const cpu_softmax_work_t *work, int64_t first,
                              int64_t last, cpu_softmax_finish_t *finish);

/* Is [target] the first of the largest logits of a row? */
bool cpu_softmax_hit(const float *x, int64_t target, float top);

/* Positions [row, row + count) of x [.., classes, inner]. */
typedef struct cpu_softmax_span {
    int64_t row, count;
    int64_t offset; /* of class 0 of the first position */
} cpu_softmax_span_t;

/* Blocks of positions: how many, and which positions one is. */
int64_t cpu_softmax_blocks(const op_classes_t *at);
cpu_softmax_span_t cpu_softmax_block_span(const op_classes_t *at,
                                          int64_t block);

/* The maximum of each of [count] positions, and the first class that has it;
 * the sum of exp(x - top). */
void cpu_softmax_block_top(const float *x, const op_classes_t *at,
                           int64_t count, float *top, int32_t *best);
void cpu_softmax_block_sum(const float *x, const op_classes_t *at,
                           int64_t count, const float *top, float *sum);

/* Bodies for a team: blocks of positions; and targets that are probabilities,
 * by rows and by blocks. */
void cpu_softmax_blocks_forward(void *context, int64_t first, int64_t last);
void cpu_softmax_blocks_backward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_forward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_backward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_blocks_forward(void *context, int64_t first,
                                     int64_t last);
void cpu_softmax_soft_blocks_backward(void *context, int64_t first,
                                      int64_t last);

#endif
