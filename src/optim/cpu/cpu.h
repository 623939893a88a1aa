/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The place "cpu": vector loops that the threads of the ops' team share. Every
 * block and piece is computed by one thread, so the number of threads changes
 * no bit. The place ignores streams.
 */
#ifndef CDDP_OPTIM_CPU_CPU_H
#define CDDP_OPTIM_CPU_CPU_H

#include "optim/place_ops.h"

typedef struct optim_cpu {
    optim_place_t base;
    int threads;
} optim_cpu_t;

/* ---- norm.c -------------------------------------------------------------- */

/* A sum along a binary tree over the numbers of blocks: its bits depend only on
 * the sums of the blocks. Initialize it with zeros. */
typedef struct optim_cpu_sum {
    /* Levels[k] is the sum of a complete subtree of 2^k blocks, if bit k of
     * [blocks] is set. */
    double levels[64];
    size_t blocks;
} optim_cpu_sum_t;

void optim_cpu_sum_add(optim_cpu_sum_t *sum, double block);
double optim_cpu_sum_total(const optim_cpu_sum_t *sum);
/* The sum of squares of at most OPTIM_BLOCK numbers. */
double optim_cpu_block_squares(const float *x, size_t elems);

/* Multiply by [factor] unless it is 1, then clamp to [-most, most] unless it is
 * 0. */
void optim_cpu_clip(float *grads, size_t elems, float factor, float most,
                    int threads);

/* As the functions of optim_place_ops_t. */
err_code_t optim_cpu_norm(optim_place_t *place, const float *grads,
                          size_t elems, double *norm, dev_stream_t *stream,
                          err_t *err);
err_code_t optim_cpu_norm_part(optim_place_t *place, const float *grads,
                               view_range_t range, double *blocks,
                               dev_stream_t *stream, err_t *err);
err_code_t optim_cpu_norm_whole(optim_place_t *place, const double *blocks,
                                size_t count, double *norm,
                                dev_stream_t *stream, err_t *err);
err_code_t optim_cpu_scale(optim_place_t *place, float *data, size_t elems,
                           float factor, dev_stream_t *stream, err_t *err);

/* ---- loops.c ------------------------------------------------------------- */

/* One update of contiguous elements with equal options. The arrays do not
 * overlap. */
typedef struct optim_cpu_piece {
    optim_loop_t loop;
    const float *scalars;
    float rate; /* LAMB, LARS: the learning rate of the tensor */
    size_t elems;
    float *params;
    const float *grads;
    float *slots[OPTIM_SLOTS_MAX];
} optim_cpu_piece_t;

void optim_cpu_loop(const optim_cpu_piece_t *piece);

/* LAMB: add the gradients to the moving averages. */
void optim_cpu_lamb_moments(const optim_cpu_piece_t *piece);
/* LAMB: write the direction of at most OPTIM_BLOCK elements to [out]. */
void optim_cpu_lamb_direction(const optim_cpu_piece_t *piece, float *out);

/* As torch.optim.swa_utils: the average begins with the result of the first
 * update. */
void optim_cpu_average(float *average, const float *params, size_t elems,
                       float fresh, bool first);

/* ---- update.c: as the functions of optim_place_ops_t --------------------- */

err_code_t optim_cpu_measure(optim_place_t *place, const optim_pass_t *pass,
                             dev_stream_t *stream, err_t *err);
err_code_t optim_cpu_update(optim_place_t *place, const optim_pass_t *pass,
                            int part, dev_stream_t *stream, err_t *err);

#endif
