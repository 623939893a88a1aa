/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * For rows of logits whose classes are adjacent in memory: the maxima, the
 * sums of exponentials, and the exponentials for the gradient. Sums have
 * SIMD_LANES partial sums, which the compiler keeps in a vector register. With
 * fewer classes than SIMD_LANES, up to SIMD_LANES rows are transposed and
 * computed together.
 */
#include "op/cpu/ops/softmax.h"
#include "simd/vector.h"

SIMD_CLONES
float cpu_softmax_top(const float *x, int64_t count)
{
    float lanes[SIMD_LANES], top = x[0];
    int64_t k = 0;

    for (int j = 0; j < SIMD_LANES; j++)
        lanes[j] = top;
    for (; k + SIMD_LANES <= count; k += SIMD_LANES)
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] = x[k + j] > lanes[j] ? x[k + j] : lanes[j];
    for (; k < count; k++)
        top = x[k] > top ? x[k] : top;
    for (int j = 0; j < SIMD_LANES; j++)
        top = lanes[j] > top ? lanes[j] : top;
    return top;
}

/* sum_k exp(x[k] - top) */
SIMD_CLONES
static float cpu_softmax_sum(const float *x, int64_t K, float top)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + SIMD_LANES <= K; k += SIMD_LANES) {
        float powers[SIMD_LANES];

        for (int j = 0; j < SIMD_LANES; j++)
            powers[j] = simd_math_exp(x[k + j] - top);
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += powers[j];
    }
    for (; k < K; k++)
        sum += simd_math_exp(x[k] - top);
    for (int j = 0; j < SIMD_LANES; j++)
        sum += lanes[j];
    return sum;
}

/* ---- rows of few classes ------------------------------------------------- */

/* Transpose x [n, K]: row j becomes column j. n and K are at most SIMD_LANES.
 */
SIMD_INLINE void few_transpose(const float *x, int64_t K, int64_t n,
                               float columns[][SIMD_LANES])
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < K; k++)
            columns[k][j] = x[j * K + k];
}

/* Maximum and sum of exponentials of each of [n] rows. */
SIMD_CLONES
static void few_sums(const float *x, int64_t K, int64_t n, float *top,
                     float *sum)
{
    float columns[SIMD_LANES][SIMD_LANES] = {0};
    float most[SIMD_LANES], total[SIMD_LANES] = {0};

    few_transpose(x, K, n, columns);
    for (int j = 0; j < SIMD_LANES; j++)
        most[j] = columns[0][j];
    for (int64_t k = 1; k < K; k++)
        for (int j = 0; j < SIMD_LANES; j++)
            most[j] = columns[k][j] > most[j] ? columns[k][j] : most[j];
    for (int64_t k = 0; k < K; k++)
        for (int j = 0; j < SIMD_LANES; j++)
            total[j] += simd_math_exp(columns[k][j] - most[j]);
    memcpy(top, most, sizeof most);
    memcpy(sum, total, sizeof total);
}

/* cpu_softmax_slopes for fewer than SIMD_LANES classes. */
SIMD_CLONES
static void few_slopes(const cpu_softmax_work_t *work, int64_t row,
                       int64_t count, const float *top, const float *factor)
{
    const int64_t K = work->at.classes;
    float columns[SIMD_LANES][SIMD_LANES] = {0};
    float *dx = work->dx + row * K;

    few_transpose(work->x + row * K, K, count, columns);
    for (int64_t k = 0; k < K; k++)
        for (int j = 0; j < SIMD_LANES; j++)
            columns[k][j] = simd_math_exp(columns[k][j] - top[j]) * factor[j];
    for (int64_t j = 0; j < count; j++)
        for (int64_t k = 0; k < K; k++)
            dx[j * K + k] = columns[k][j];
}

/* ---- rows ---------------------------------------------------------------- */

/* Maximum, and sum of exp(x - top), of each of [n] rows x [n,K], at most
 * SIMD_LANES. top and sum have SIMD_LANES elements. */
static void rows_sums(const float *x, int64_t K, int64_t n, float *top,
                      float *sum)
{
    if (K < SIMD_LANES) {
        few_sums(x, K, n, top, sum);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        top[j] = cpu_softmax_top(x + j * K, K);
        sum[j] = cpu_softmax_sum(x + j * K, K, top[j]);
    }
}

void cpu_softmax_rows_forward(const cpu_softmax_work_t *work, int64_t first,
                              int64_t last, cpu_softmax_finish_t *finish)
{
    const int64_t K = work->at.classes;
    float top[SIMD_LANES], sum[SIMD_LANES];

    for (int64_t n = first; n < last; n += SIMD_LANES) {
        const int64_t rows = last - n < SIMD_LANES ? last - n : SIMD_LANES;

        rows_sums(work->x + n * K, K, rows, top, sum);
        for (int64_t j = 0; j < rows; j++)
            finish(work, n + j, top[j], sum[j]);
    }
}

/* dx[k] = exp(x[k] - top) factor */
SIMD_CLONES
static void cpu_softmax_slope(const float *x, float *dx, int64_t K, float top,
                              float factor)
{
    for (int64_t k = 0; k < K; k++)
        dx[k] = simd_math_exp(x[k] - top) * factor;
}

void cpu_softmax_slopes(const cpu_softmax_work_t *work, int64_t row,
                        int64_t count, const float *top, const float *factor)
{
    const int64_t K = work->at.classes;

    if (K < SIMD_LANES) {
        few_slopes(work, row, count, top, factor);
        return;
    }
    for (int64_t j = 0; j < count; j++)
        cpu_softmax_slope(work->x + (row + j) * K, work->dx + (row + j) * K, K,
                          top[j], factor[j]);
}

bool cpu_softmax_hit(const float *x, int64_t target, float top)
{
    if (!(x[target] >= top))
        return false;
    for (int64_t k = 0; k < target; k++)
        if (x[k] >= top)
            return false;
    return true;
}
