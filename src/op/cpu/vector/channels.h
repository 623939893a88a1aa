/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The loops of batchnorm over a run. A run is the elements of one block of
 * channels in one or more samples, as vectors of 16 lanes. Each lane has the
 * statistics of its channel; in plain layout, all lanes belong to one channel.
 * With relu, the output is max(0, .), and NaN stays NaN; the gradient is 0
 * where the output is not above 0. Tensors are float32 or bfloat16. bfloat16
 * elements are converted to float32 when read and rounded when written.
 */
#ifndef CDDP_OP_CPU_VECTOR_CHANNELS_H
#define CDDP_OP_CPU_VECTOR_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_WIDE 16

typedef struct cpu_run {
    /* vectors: number of full vectors per sample; stride: elements from one
     * vector to the next */
    int64_t vectors, stride;
    int width; /* lanes used in each vector; other elements are unchanged */
    int rest; /* lanes used of one more vector after these; 0: no such vector */
    /* samples: number of samples; apart: elements from one sample to the next
     */
    int64_t samples, apart;
    bool bf16; /* tensors are stored as bfloat16 */
} cpu_run_t;

/* Tensors, or parts of them, in the layout of a run. NULL: not used. */
typedef struct cpu_tensors {
    const void *x, *y, *dy;
    const void *other; /* added in forward */
    void *to;          /* y or dx */
    void *dother;
} cpu_tensors_t;

typedef struct cpu_lanes {
    float mean[CPU_WIDE], factor[CPU_WIDE];
    float shift[CPU_WIDE];                    /* used in forward */
    float plain[CPU_WIDE], product[CPU_WIDE]; /* used in backward */
} cpu_lanes_t;

/* cpu_channels_sum: sum of x. cpu_channels_moments: sums of x - centre and of
 * its square. Both write one result per lane. */
void cpu_channels_sum(const void *x, cpu_run_t run, float *sum);
void cpu_channels_moments(const void *x, cpu_run_t run, const float *centre,
                          float *first, float *second);

/* to = (x - mean) factor + shift, plus other unless it is NULL. [relu]: then
 * relu. */
void cpu_channels_apply(const cpu_tensors_t *tensors, cpu_run_t run,
                        const cpu_lanes_t *lanes, bool relu);

/* Sums of g and g (x - mean). g is dy; if y is not NULL, g is dy where y is
 * above 0, else 0. g is written to dother, unless that is NULL. */
void cpu_channels_products(const cpu_tensors_t *tensors, cpu_run_t run,
                           const float *mean, float *plain, float *product);

/* to = factor (g - plain - (x - mean) product), with g as in
 * cpu_channels_products. */
void cpu_channels_backward(const cpu_tensors_t *tensors, cpu_run_t run,
                           const cpu_lanes_t *lanes);

#endif
