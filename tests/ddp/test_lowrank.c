/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Products with few columns compared with plain float64 loops, and orthonormal
 * vectors. */
#include "ddp/lowrank.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

#define ROWS 37
#define COLUMNS 53
#define RANK 3

static void fill(float *x, int count, uint64_t seed)
{
    rng_t rng;

    rng_open(&rng, seed, RNG_INIT, 0, 0);
    for (int i = 0; i < count; i++)
        x[i] = (float)rng_normal(&rng);
}

static const lowrank_t shape = {.rows = ROWS, .columns = COLUMNS, .rank = RANK};

Test(lowrank, products_are_those_of_plain_loops)
{
    float m[ROWS * COLUMNS], back[ROWS * COLUMNS], rest[ROWS * COLUMNS];
    float p[RANK * ROWS], q[RANK * COLUMNS], left[RANK * COLUMNS];

    fill(m, ROWS * COLUMNS, 1);
    fill(q, RANK * COLUMNS, 2);
    lowrank_right(&shape, m, q, p);
    lowrank_left(&shape, m, p, left);
    lowrank_expand(&shape, p, q, back);
    lowrank_rest(&shape, m, p, q, rest);
    for (int k = 0; k < RANK; k++)
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;

            for (int j = 0; j < COLUMNS; j++)
                sum += (double)m[i * COLUMNS + j] * q[k * COLUMNS + j];
            cr_assert_float_eq(p[k * ROWS + i], sum, 1e-4);
        }
    for (int k = 0; k < RANK; k++)
        for (int j = 0; j < COLUMNS; j++) {
            double sum = 0;

            for (int i = 0; i < ROWS; i++)
                sum += (double)m[i * COLUMNS + j] * p[k * ROWS + i];
            cr_assert_float_eq(left[k * COLUMNS + j], sum, 1e-3);
        }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double sum = 0;

            for (int k = 0; k < RANK; k++)
                sum += (double)p[k * ROWS + i] * q[k * COLUMNS + j];
            cr_assert_float_eq(back[i * COLUMNS + j], sum, 1e-3);
            cr_assert_float_eq(rest[i * COLUMNS + j],
                               (double)m[i * COLUMNS + j] - sum, 1e-3);
        }
}

static double dot(const float *a, const float *b, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

Test(lowrank, vectors_become_orthonormal)
{
    float v[RANK * COLUMNS];

    fill(v, RANK * COLUMNS, 3);
    /* Almost parallel vectors of very different lengths. */
    for (int i = 0; i < COLUMNS; i++) {
        v[COLUMNS + i] = 1e8f * (v[i] + 1e-3f * v[COLUMNS + i]);
        v[2 * COLUMNS + i] *= 1e-12f;
    }
    cr_assert_eq(lowrank_orthonormalize(v, RANK, COLUMNS), RANK);
    for (int a = 0; a < RANK; a++)
        for (int b = 0; b < RANK; b++)
            cr_assert_float_eq(dot(v + a * COLUMNS, v + b * COLUMNS, COLUMNS),
                               a == b ? 1.0 : 0.0, 1e-5, "%d %d", a, b);
}

Test(lowrank, a_vector_that_says_nothing_new_becomes_zero)
{
    float v[RANK * COLUMNS];

    fill(v, RANK * COLUMNS, 4);
    for (int i = 0; i < COLUMNS; i++)
        v[COLUMNS + i] = -3 * v[i];
    cr_assert_eq(lowrank_orthonormalize(v, RANK, COLUMNS), 1);
    for (int i = 0; i < COLUMNS; i++)
        cr_assert_eq(v[COLUMNS + i], 0.0f);
    cr_assert_float_eq(dot(v + 2 * COLUMNS, v + 2 * COLUMNS, COLUMNS), 1.0,
                       1e-5);
    memset(v, 0, sizeof v);
    cr_assert_eq(lowrank_orthonormalize(v, RANK, COLUMNS), 0);
}

/* NaN stays NaN, so that a diverging run is noticed. */
Test(lowrank, what_is_no_number_stays_so)
{
    float v[RANK * COLUMNS];

    fill(v, RANK * COLUMNS, 5);
    v[7] = NAN;
    lowrank_orthonormalize(v, RANK, COLUMNS);
    cr_assert(isnan(v[0]) && isnan(v[COLUMNS]));
}
