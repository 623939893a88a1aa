/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the parts of the norms share: norm.c (calls), norm_rows.c (y and the
 * gradient of x), norm_params.c (gradients of the parameters), norm_sums.c
 * (sums over segments). A row is a list of segments whose elements have one
 * parameter each (space = 1) or all the same one.
 */
#ifndef CDDP_OP_CPU_OPS_NORM_H
#define CDDP_OP_CPU_OPS_NORM_H

#include "op/op_geometry.h"
#include "op/op_ops.h"

#define CPU_NORM_STRETCH 2048
/* Rows whose sums for the parameters are added in float before they go on in
 * double. */
#define CPU_NORM_ROWS 128

typedef struct cpu_norm_work {
    op_rows_t rows;
    bool centred;    /* not rmsnorm */
    int64_t segment; /* elements of a segment */
    int step;        /* of gamma from element to element: 1, or 0 */
    float epsilon;
    const float *x, *dy, *gamma, *beta;
    void *y;
    bool narrow; /* y as bfloat16 */
    float *dx;
    float *kept; /* [rows,2], NULL in evaluation */
    float *dgamma, *dbeta;
    bool adds;    /* dx is added to what is there */
    double *sums; /* of dy * xhat and dy of each row's segments, or NULL */
    float *parts; /* sums of each CPU_NORM_ROWS rows: [2,length] of dgamma,
                     dbeta */
} cpu_norm_work_t;

static inline int64_t cpu_norm_stretch(int64_t left)
{
    return left < CPU_NORM_STRETCH ? left : CPU_NORM_STRETCH;
}

/* ---- sums ---------------------------------------------------------------- */

/* Sums over a segment: of g, and of g * xhat. */
typedef struct cpu_norm_sums {
    double plain, product;
} cpu_norm_sums_t;

/* Of x - mean, which is both g and xhat. */
cpu_norm_sums_t cpu_norm_sums_x(const float *x, int64_t n, float mean);

/* g is dy times the [gamma] of each element; NULL: dy. [kept]: mean and factor
 * of the row. */
cpu_norm_sums_t cpu_norm_sums(const float *x, const float *dy,
                              const float *gamma, int64_t n, const float *kept);

/* ---- bodies of teams; [context] is the work ------------------------------ */

/* y of rows [first, last). */
void cpu_norm_body_forward(void *context, int64_t first, int64_t last);
/* dx of rows [first, last). */
void cpu_norm_body_backward(void *context, int64_t first, int64_t last);
/* The gradients of parameters [first, last). */
void cpu_norm_body_params(void *context, int64_t first, int64_t last);
/* Stretches [first, last) of CPU_NORM_ROWS rows: dx, and their sums for the
 * parameters while a row is in the cache; cpu_norm_add_parts adds them up. */
void cpu_norm_body_all(void *context, int64_t first, int64_t last);
void cpu_norm_add_parts(const cpu_norm_work_t *work, int64_t parts);

#endif
