/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of the norms share: norm.c (calls), norm_rows.c (y and the
 * gradient of x), norm_params.c (gradients of the parameters), norm_sums.c
 * (sums over segments). A row consists of segments. Either each element of a
 * segment has its own parameter (space = 1), or all elements of a segment
 * share one.
 */
#ifndef CDDP_OP_CPU_OPS_NORM_H
#define CDDP_OP_CPU_OPS_NORM_H

#include "op/op_geometry.h"
#include "op/op_ops.h"

#define CPU_NORM_STRETCH 2048
/* Rows whose contributions to the parameters' gradients are added in float;
 * these sums are then added in double. */
#define CPU_NORM_ROWS 128

/* Mean of a row, and 1 / its deviation. */
typedef struct cpu_norm_row {
    float mean, factor;
} cpu_norm_row_t;

typedef struct cpu_norm_work {
    op_rows_t rows;
    bool centred;    /* not rmsnorm */
    int64_t segment; /* elements of a segment */
    int step; /* gamma's step from element to element: 1, or 0 if shared */
    float epsilon;
    const float *x, *dy, *gamma, *beta;
    void *y;
    bool bf16; /* y is stored as bfloat16 */
    float *dx;
    cpu_norm_row_t *kept; /* [rows]; NULL in evaluation */
    float *dgamma, *dbeta;
    bool adds;    /* add to dx instead of overwriting it */
    double *sums; /* sums of dy * xhat and dy per segment, or NULL */
    float *parts; /* gradient sums of each CPU_NORM_ROWS rows: [2,length] for
                     dgamma and dbeta */
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

/* The sums over x, with g = xhat = x - mean. */
cpu_norm_sums_t cpu_norm_sums_x(const float *x, int64_t n, float mean);

/* The sums with g = dy * gamma, element by element, or g = dy if [gamma] is
 * NULL. */
cpu_norm_sums_t cpu_norm_sums(const float *x, const float *dy,
                              const float *gamma, int64_t n,
                              cpu_norm_row_t row);

/* ---- thread bodies; [context] is a cpu_norm_work_t ----------------------- */

/* Compute y of rows [first, last). */
void cpu_norm_body_forward(void *context, int64_t first, int64_t last);
/* Compute dx of rows [first, last). */
void cpu_norm_body_backward(void *context, int64_t first, int64_t last);
/* Compute the gradients of parameters [first, last). */
void cpu_norm_body_params(void *context, int64_t first, int64_t last);
/* For parts [first, last), of CPU_NORM_ROWS rows each: compute dx and, while a
 * row is in the cache, the part's sums for the parameters. Then
 * cpu_norm_add_parts adds the sums of all parts. */
void cpu_norm_body_all(void *context, int64_t first, int64_t last);
void cpu_norm_add_parts(const cpu_norm_work_t *work, int64_t parts);

#endif
