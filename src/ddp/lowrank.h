/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The arithmetic of PowerSGD: products of a matrix M (rows x columns, stored
 * row by row) with a few long vectors. P consists of [rank] vectors of [rows]
 * elements, Q of [rank] vectors of [columns] elements, one vector after the
 * other. Every number is computed in one order, whatever the vector unit, so
 * all ranks get the same bits. Pure.
 */
#ifndef CDDP_DDP_LOWRANK_H
#define CDDP_DDP_LOWRANK_H

#include <stdint.h>

typedef struct lowrank {
    int64_t rows, columns;
    int rank;
} lowrank_t;

/* P = M Q */
void lowrank_right(const lowrank_t *shape, const float *m, const float *q,
                   float *p);

/* Q = M^T P */
void lowrank_left(const lowrank_t *shape, const float *m, const float *p,
                  float *q);

/* M = P Q^T */
void lowrank_expand(const lowrank_t *shape, const float *p, const float *q,
                    float *m);

/* rest = M - P Q^T */
void lowrank_rest(const lowrank_t *shape, const float *m, const float *p,
                  const float *q, float *rest);

/*
 * Make the [rank] vectors of [count] elements at [vectors] orthonormal, in
 * order (modified Gram-Schmidt in float64). A vector that is zero, or depends
 * on the vectors before it, becomes zero. Returns the index of the first such
 * vector, or [rank] if there is none. NaN stays NaN.
 */
int lowrank_orthonormalize(float *vectors, int rank, int64_t count);

#endif
