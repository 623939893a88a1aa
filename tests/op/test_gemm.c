/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Our own matrix products compared with plain loops: shapes with remainders in
 * every direction, transposed or not, several blocks of rows and columns, and
 * teams of any size. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/cpu/vector/gemm.h"

typedef struct shape {
    int64_t M, N, K;
} shape_t;

/* The last shapes have several slices, blocks of columns and blocks of rows. */
static const shape_t shapes[] = {
    {1, 1, 1},     {8, 48, 4},     {7, 47, 3},     {9, 49, 17},   {16, 64, 384},
    {33, 16, 385}, {40, 97, 31},   {17, 130, 800}, {5, 800, 391}, {520, 50, 40},
    {513, 771, 5}, {530, 33, 770}, {9, 112, 17}};

#define SHAPES (sizeof shapes / sizeof shapes[0])

typedef struct trial {
    shape_t s;
    cpu_gemm_t gemm;
    float *a, *b, *c, *bias;
    int64_t c_row;
    void *scratch;
} trial_t;

static float *numbers(int64_t count, unsigned seed)
{
    float *x = malloc((size_t)count * sizeof *x);

    cr_assert_not_null(x);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
    }
    return x;
}

/* A row of C is longer than N; the rest of the row must not change. */
static trial_t trial_open(shape_t s, bool a_transposed, bool b_transposed,
                          bool bias)
{
    trial_t t = {.s = s, .c_row = s.N + 3};

    t.a = numbers(s.M * s.K, 1);
    t.b = numbers(s.K * s.N, 2);
    t.bias = numbers(s.N, 3);
    t.c = numbers(s.M * t.c_row, 4);
    t.scratch = aligned_alloc(64, cpu_gemm_bytes(3));
    cr_assert_not_null(t.scratch);
    t.gemm =
        (cpu_gemm_t){.M = s.M,
                     .N = s.N,
                     .K = s.K,
                     .a = {t.a, a_transposed ? 1 : s.K, a_transposed ? s.M : 1},
                     .b = {t.b, b_transposed ? 1 : s.N, b_transposed ? s.K : 1},
                     .bias = bias ? t.bias : NULL,
                     .c = t.c,
                     .c_row = t.c_row};
    return t;
}

static void trial_close(trial_t *t)
{
    free(t->a);
    free(t->b);
    free(t->c);
    free(t->bias);
    free(t->scratch);
}

static double element(const trial_t *t, int64_t i, int64_t j)
{
    const cpu_matrix_t a = t->gemm.a, b = t->gemm.b;
    double sum = t->gemm.bias == NULL ? 0 : (double)t->bias[j];

    for (int64_t k = 0; k < t->s.K; k++)
        sum += (double)a.data[i * a.row + k * a.column] *
               (double)b.data[k * b.row + j * b.column];
    return sum;
}

static void check(const trial_t *t, int form)
{
    float *behind = numbers(t->s.M * t->c_row, 4);

    for (int64_t i = 0; i < t->s.M; i++) {
        for (int64_t j = 0; j < t->s.N; j++) {
            const double right = element(t, i, j);
            const double found = (double)t->c[i * t->c_row + j];

            cr_assert(fabs(found - right) <= 2e-6 * (double)(t->s.K + 4),
                      "%lld x %lld x %lld, form %d: [%lld,%lld] is %g, not %g",
                      (long long)t->s.M, (long long)t->s.N, (long long)t->s.K,
                      form, (long long)i, (long long)j, found, right);
        }
        cr_assert_arr_eq(t->c + i * t->c_row + t->s.N,
                         behind + i * t->c_row + t->s.N, 3 * sizeof(float));
    }
    free(behind);
}

static void need_vectors(void)
{
    if (!cpu_gemm_supported())
        cr_skip_test("this CPU has no AVX-512");
}

Test(gemm, equals_plain_loops)
{
    need_vectors();
    for (size_t i = 0; i < SHAPES; i++)
        for (int form = 0; form < 8; form++) {
            trial_t t = trial_open(shapes[i], form & 1, form & 2, form & 4);

            cpu_gemm_run(&t.gemm, 1, t.scratch);
            check(&t, form);
            trial_close(&t);
        }
}

Test(gemm, gives_the_same_bits_in_any_team)
{
    need_vectors();
    for (size_t i = 0; i < SHAPES; i++)
        for (int form = 0; form < 4; form++) {
            trial_t one = trial_open(shapes[i], form & 1, form & 2, true);
            trial_t team = trial_open(shapes[i], form & 1, form & 2, true);

            cpu_gemm_run(&one.gemm, 1, one.scratch);
            for (int threads = 2; threads <= 3; threads++) {
                cpu_gemm_run(&team.gemm, threads, team.scratch);
                cr_assert_arr_eq(one.c, team.c,
                                 (size_t)(one.s.M * one.c_row) * sizeof(float));
            }
            trial_close(&one);
            trial_close(&team);
        }
}

/* Check that the lower right quarter of C has the same bits if computed alone.
 */
static void expect_quarter(const trial_t *t, int form)
{
    const int64_t i = t->s.M / 2, j = t->s.N / 2;
    cpu_gemm_t part = t->gemm;
    float *c;

    part.M -= i;
    part.N -= j;
    part.a.data += i * part.a.row;
    part.b.data += j * part.b.column;
    part.bias += j;
    part.c_row = part.N;
    part.c = c = numbers(part.M * part.N, 5);
    cpu_gemm_run(&part, 1, t->scratch);
    for (int64_t row = 0; row < part.M; row++)
        cr_assert_arr_eq(c + row * part.N, t->c + (i + row) * t->c_row + j,
                         (size_t)part.N * sizeof *c,
                         "%lld x %lld x %lld, form %d: row %lld",
                         (long long)t->s.M, (long long)t->s.N,
                         (long long)t->s.K, form, (long long)row);
    free(c);
}

Test(gemm, the_bits_of_an_element_depend_on_k_alone)
{
    need_vectors();
    for (size_t i = 0; i < SHAPES; i++)
        for (int form = 0; form < 4; form++) {
            trial_t t = trial_open(shapes[i], form & 1, form & 2, true);

            cpu_gemm_run(&t.gemm, 1, t.scratch);
            expect_quarter(&t, form);
            trial_close(&t);
        }
}

/* 0 times infinity gives NaN, in the middle of a tile and at its edges. */
Test(gemm, passes_nan)
{
    need_vectors();
    for (int form = 0; form < 4; form++) {
        trial_t t = trial_open((shape_t){20, 70, 30}, form & 1, form & 2, true);
        const cpu_matrix_t b = t.gemm.b;

        memset(t.a, 0, (size_t)(t.s.M * t.s.K) * sizeof *t.a);
        t.b[3 * b.row + 5 * b.column] = INFINITY;
        t.b[3 * b.row + 69 * b.column] = INFINITY;
        cpu_gemm_run(&t.gemm, 1, t.scratch);
        for (int64_t i = 0; i < t.s.M; i++)
            for (int64_t j = 0; j < t.s.N; j++)
                cr_assert_eq(isnan(t.c[i * t.c_row + j]) != 0,
                             j == 5 || j == 69);
        trial_close(&t);
    }
}
