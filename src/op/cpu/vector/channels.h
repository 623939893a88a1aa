/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The loops of batchnorm over a run: elements of one or more samples that
 * belong to one block of channels, as vectors of 16 lanes. The numbers of a
 * lane are those of its channel; in a plain image all lanes are the same
 * channel. With relu, the output is max(0, .), and NaN stays NaN; its gradient
 * passes where the output is above 0. Tensors are float32, or lie as bfloat16
 * and are widened as they are read, rounded as they are written.
 */
#ifndef CDDP_OP_CPU_VECTOR_CHANNELS_H
#define CDDP_OP_CPU_VECTOR_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_WIDE 16

typedef struct cpu_run {
    int64_t vectors, stride; /* elements from one to the next */
    int width; /* lanes of each that count; the others are not touched */
    int rest;  /* lanes that count of one more vector behind them; 0: none */
    int64_t samples, apart; /* so often, elements from one sample to the next */
    bool bf16;              /* how all tensors lie */
} cpu_run_t;

typedef struct cpu_lanes {
    float mean[CPU_WIDE], factor[CPU_WIDE];
    float shift[CPU_WIDE];                    /* forward */
    float plain[CPU_WIDE], product[CPU_WIDE]; /* backward */
} cpu_lanes_t;

/* Sum of x; sums of x - centre and of its squares. Of each lane, written. */
void cpu_channels_sum(const void *x, cpu_run_t run, float *sum);
void cpu_channels_moments(const void *x, cpu_run_t run, const float *centre,
                          float *first, float *second);

/* y = (x - mean) factor + shift, and + other (NULL: none). */
void cpu_channels_apply(const void *x, const void *other, bool relu,
                        cpu_run_t run, const cpu_lanes_t *lanes, void *y);

/* Sums of g and g (x - mean), where g is dy or, if [y] is not NULL, what relu
 * lets through. g is written to [dother], unless that is NULL. */
void cpu_channels_products(const void *x, const void *y, const void *dy,
                           cpu_run_t run, const float *mean, float *plain,
                           float *product, void *dother);

/* dx = factor (g - plain - (x - mean) product). */
void cpu_channels_backward(const void *x, const void *y, const void *dy,
                           cpu_run_t run, const cpu_lanes_t *lanes, void *dx);

#endif
