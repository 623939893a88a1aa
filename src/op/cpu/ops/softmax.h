/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the forms of cross_entropy share. cross_entropy.c: the classes of a
 * position are adjacent in memory. softmax_dense.c: positions are adjacent,
 * and a block of them is processed at a time. softmax_soft.c: both layouts,
 * for targets that are probabilities. */
#ifndef CDDP_OP_CPU_OPS_SOFTMAX_H
#define CDDP_OP_CPU_OPS_SOFTMAX_H

#include "op/op_loss.h"
#include "op/op_ops.h"
#include "simd/math.h"

/* Positions in a block; at most 255, as a byte counts the hits. */
#define CPU_SOFTMAX_BLOCK 64

typedef struct cpu_softmax_work {
    const float *x;
    const int64_t *target; /* [rows]; OP_CROSS_ENTROPY_SOFT: NULL */
    const float
        *soft; /* OP_CROSS_ENTROPY_SOFT: probabilities, in the layout of x */
    op_classes_t at;
    op_smooth_t smooth;
    const op_loss_t *loss;
    /* [rows,2]: maximum, and 1 / sum of the exponentials
     * (OP_CROSS_ENTROPY_SOFT: total / sum, see softmax_soft.c). NULL in
     * evaluation. */
    float *kept;
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

/* Loss of a row whose logit at [target] is [hit]. [mix] is sum_k w[k] x[k],
 * used only if the loss is smoothed. */
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

/* The largest of x [count]. */
float cpu_softmax_top(const float *x, int64_t count);

/* dx = exp(x - top) factor in rows [row, row + count), at most SIMD_LANES. top
 * and factor have SIMD_LANES elements, which must all be initialised. */
void cpu_softmax_slopes(const cpu_softmax_work_t *work, int64_t row,
                        int64_t count, const float *top, const float *factor);

/* Called for row [n] with its maximum and its sum of exponentials. */
typedef void cpu_softmax_finish_t(const cpu_softmax_work_t *work, int64_t n,
                                  float top, float sum);

/* Compute maximum and sum of rows [first, last) and call [finish] for each
 * row. */
void cpu_softmax_rows_forward(const cpu_softmax_work_t *work, int64_t first,
                              int64_t last, cpu_softmax_finish_t *finish);

/* Is [target] the first class of row [x] with the maximum [top]? */
bool cpu_softmax_hit(const float *x, int64_t target, float top);

/* A range of positions, [row, row + count), of x [.., classes, inner]. */
typedef struct cpu_softmax_span {
    int64_t row, count;
    int64_t offset; /* in x, of class 0 of the first position */
} cpu_softmax_span_t;

/* cpu_softmax_blocks: number of blocks of positions. cpu_softmax_block_span:
 * the positions of one block. */
int64_t cpu_softmax_blocks(const op_classes_t *at);
cpu_softmax_span_t cpu_softmax_block_span(const op_classes_t *at,
                                          int64_t block);

/* cpu_softmax_block_top: for each of [count] positions, the maximum and the
 * first class that has it. cpu_softmax_block_sum: the sum of exp(x - top). */
void cpu_softmax_block_top(const float *x, const op_classes_t *at,
                           int64_t count, float *top, int32_t *best);
void cpu_softmax_block_sum(const float *x, const op_classes_t *at,
                           int64_t count, const float *top, float *sum);

/* Thread bodies: over blocks of positions; then, for targets that are
 * probabilities, over rows and over blocks of positions. */
void cpu_softmax_blocks_forward(void *context, int64_t first, int64_t last);
void cpu_softmax_blocks_backward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_forward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_backward(void *context, int64_t first, int64_t last);
void cpu_softmax_soft_blocks_forward(void *context, int64_t first,
                                     int64_t last);
void cpu_softmax_soft_blocks_backward(void *context, int64_t first,
                                      int64_t last);

#endif
