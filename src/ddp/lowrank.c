/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/lowrank.h"

#include <math.h>
#include <string.h>

#include "simd/vector.h"

/* Number of partial sums, so that a loop can be vectorised with a fixed order
 * of additions. */
#define LANES 16

/* If removing its projections shortens a vector to less than this fraction,
 * only rounding error is left. */
#define DEPENDENT 1e-6

/* ---- products ------------------------------------------------------------ */

SIMD_CLONES static float dot(const float *restrict a, const float *restrict b,
                             int64_t count)
{
    float lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* y += factor x */
SIMD_CLONES static void add(float *restrict y, const float *restrict x,
                            int64_t count, float factor)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] += factor * x[i];
}

void lowrank_right(const lowrank_t *shape, const float *m, const float *q,
                   float *p)
{
    for (int64_t i = 0; i < shape->rows; i++)
        for (int k = 0; k < shape->rank; k++)
            p[k * shape->rows + i] = dot(
                m + i * shape->columns, q + k * shape->columns, shape->columns);
}

void lowrank_left(const lowrank_t *shape, const float *m, const float *p,
                  float *q)
{
    memset(q, 0, (size_t)(shape->rank * shape->columns) * sizeof *q);
    for (int64_t i = 0; i < shape->rows; i++)
        for (int k = 0; k < shape->rank; k++)
            add(q + k * shape->columns, m + i * shape->columns, shape->columns,
                p[k * shape->rows + i]);
}

void lowrank_expand(const lowrank_t *shape, const float *p, const float *q,
                    float *m)
{
    memset(m, 0, (size_t)(shape->rows * shape->columns) * sizeof *m);
    for (int64_t i = 0; i < shape->rows; i++)
        for (int k = 0; k < shape->rank; k++)
            add(m + i * shape->columns, q + k * shape->columns, shape->columns,
                p[k * shape->rows + i]);
}

void lowrank_rest(const lowrank_t *shape, const float *m, const float *p,
                  const float *q, float *rest)
{
    memcpy(rest, m, (size_t)(shape->rows * shape->columns) * sizeof *rest);
    for (int64_t i = 0; i < shape->rows; i++)
        for (int k = 0; k < shape->rank; k++)
            add(rest + i * shape->columns, q + k * shape->columns,
                shape->columns, -p[k * shape->rows + i]);
}

/* ---- orthonormal vectors ------------------------------------------------- */

SIMD_CLONES static double dot64(const float *restrict a,
                                const float *restrict b, int64_t count)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lanes[l] += (double)a[i + l] * (double)b[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

SIMD_CLONES static void scale(float *x, int64_t count, float factor)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

/* Subtract from vector [k] its projections on the vectors before it. Returns
 * its new length. */
static double project(float *vectors, int k, int64_t count)
{
    float *v = vectors + k * count;

    for (int j = 0; j < k; j++) {
        const float *u = vectors + j * count;

        add(v, u, count, (float)-dot64(v, u, count));
    }
    return sqrt(dot64(v, v, count));
}

int lowrank_orthonormalize(float *vectors, int rank, int64_t count)
{
    int first = rank;

    for (int k = 0; k < rank; k++) {
        float *v = vectors + k * count;
        double before = sqrt(dot64(v, v, count));
        double left = project(vectors, k, count);

        if (left <= DEPENDENT * before) {
            memset(v, 0, (size_t)count * sizeof *v);
            first = k < first ? k : first;
            continue;
        }
        scale(v, count, (float)(1.0 / left));
        /* Repeat the projection: the first one leaves a relative error of about
         * float32 rounding times before / left. */
        left = project(vectors, k, count);
        scale(v, count, (float)(1.0 / left));
    }
    return first;
}
