/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Sums of rows, in float32: one row is added after the other, so that the
 * result does not depend on the number of threads. */
#ifndef CDDP_OP_CPU_VECTOR_ROWS_H
#define CDDP_OP_CPU_VECTOR_ROWS_H

#include <stdint.h>

/* to += from. They must not overlap. */
void cpu_row_add(float *restrict to, const float *restrict from, int64_t count);

/* The sums of the columns of [from], a matrix [rows, columns]. */
typedef struct cpu_column_sums {
    const float *from;
    float *to; /* [columns] */
    int64_t rows, columns;
} cpu_column_sums_t;

/* Thread body: compute columns [first, last); [context] is a
 * cpu_column_sums_t. */
void cpu_column_sums_body(void *context, int64_t first, int64_t last);

#endif
