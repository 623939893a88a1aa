/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy of probabilities t: with s[k] = (1 - smoothing) t[k] +
 * smoothing / K, a row has the loss
 *   sum_k s[k] w[k] (log_sum - x[k]) = total log_sum - mix
 * with total = sum_k s[k] w[k] and mix = sum_k s[k] w[k] x[k], and the gradient
 *   total p[k] - s[k] w[k]
 * p is the softmax of the row. One form is for adjacent classes, as in
 * cross_entropy.c, and one for adjacent positions, as in softmax_dense.c.
 */
#include "op/cpu/ops/softmax.h"
#include "simd/vector.h"

/* How s and w are computed. */
typedef struct soft_mix {
    float hit, spread; /* s = hit t + spread */
    const float *weights;
} soft_mix_t;

static soft_mix_t mix_of(const cpu_softmax_work_t *work)
{
    return (soft_mix_t){.hit = (float)work->smooth.hit,
                        .spread = (float)work->smooth.spread,
                        .weights = work->loss->weights};
}

/* ---- rows ---------------------------------------------------------------- */

/* Return the total of a row, and set [*mix]. */
SIMD_CLONES
static double row_mix(soft_mix_t how, const float *x, const float *t, int64_t K,
                      double *mix)
{
    double totals[SIMD_LANES] = {0}, mixes[SIMD_LANES] = {0}, total = 0;

    *mix = 0;
    for (int64_t k = 0; k < K; k += SIMD_LANES) {
        const int64_t left = K - k, n = left < SIMD_LANES ? left : SIMD_LANES;

        for (int64_t j = 0; j < n; j++) {
            const float w = how.weights == NULL ? 1 : how.weights[k + j];
            const double s = (double)((how.hit * t[k + j] + how.spread) * w);

            totals[j] += s;
            mixes[j] += s * (double)x[k + j];
        }
    }
    for (int j = 0; j < SIMD_LANES; j++) {
        total += totals[j];
        *mix += mixes[j];
    }
    return total;
}

/* First class with the largest probability. */
static int64_t row_best(const float *t, int64_t K)
{
    int64_t best = 0;

    for (int64_t k = 1; k < K; k++)
        best = t[k] > t[best] ? k : best;
    return best;
}

static void row_finish(const cpu_softmax_work_t *work, int64_t n, float top,
                       float sum)
{
    const int64_t K = work->at.classes;
    const float *x = work->x + n * K, *t = work->soft + n * K;
    double mix, total = row_mix(mix_of(work), x, t, K, &mix);

    work->losses[n] = total * (log((double)sum) + (double)top) - mix;
    work->hits[n] = cpu_softmax_hit(x, row_best(t, K), top);
    if (work->kept != NULL) {
        work->kept[2 * n] = top;
        work->kept[2 * n + 1] = (float)total / sum;
    }
}

void cpu_softmax_soft_forward(void *context, int64_t first, int64_t last)
{
    cpu_softmax_rows_forward(context, first, last, row_finish);
}

/* dx[k] -= scale s[k] w[k] */
SIMD_CLONES
static void row_subtract(soft_mix_t how, const float *t, float *dx, int64_t K,
                         float scale)
{
    SIMD_INDEPENDENT
    for (int64_t k = 0; k < K; k++) {
        const float w = how.weights == NULL ? 1 : how.weights[k];

        dx[k] -= scale * ((how.hit * t[k] + how.spread) * w);
    }
}

void cpu_softmax_soft_backward(void *context, int64_t first, int64_t last)
{
    const cpu_softmax_work_t *work = context;
    const int64_t K = work->at.classes;

    for (int64_t n = first; n < last; n += SIMD_LANES) {
        const int64_t rows = last - n < SIMD_LANES ? last - n : SIMD_LANES;
        float top[SIMD_LANES] = {0}, factor[SIMD_LANES] = {0};

        for (int64_t j = 0; j < rows; j++) {
            top[j] = work->kept[2 * (n + j)];
            factor[j] = work->scale * work->kept[2 * (n + j) + 1];
        }
        cpu_softmax_slopes(work, n, rows, top, factor);
        for (int64_t j = 0; j < rows; j++)
            row_subtract(mix_of(work), work->soft + (n + j) * K,
                         work->dx + (n + j) * K, K, work->scale);
    }
}

/* ---- blocks of positions ------------------------------------------------- */

/* Compute total and mix of each position. */
SIMD_CLONES
static void block_mix(const cpu_softmax_work_t *work, int64_t offset,
                      int64_t count, double *total, double *mix)
{
    const soft_mix_t how = mix_of(work);

    for (int64_t i = 0; i < count; i++)
        total[i] = mix[i] = 0;
    for (int64_t k = 0; k < work->at.classes; k++) {
        const float *x = work->x + offset + k * work->at.inner;
        const float *t = work->soft + offset + k * work->at.inner;
        const float w = cpu_softmax_weight(work, k);

        for (int64_t i = 0; i < count; i++) {
            const double s = (double)((how.hit * t[i] + how.spread) * w);

            total[i] += s;
            mix[i] += s * (double)x[i];
        }
    }
}

static void block_forward(const cpu_softmax_work_t *work, int64_t block)
{
    const cpu_softmax_span_t span = cpu_softmax_block_span(&work->at, block);
    const float *x = work->x + span.offset, *t = work->soft + span.offset;
    float top[CPU_SOFTMAX_BLOCK] = {0}, sum[CPU_SOFTMAX_BLOCK];
    double total[CPU_SOFTMAX_BLOCK] = {0}, mix[CPU_SOFTMAX_BLOCK] = {0};
    int32_t best[CPU_SOFTMAX_BLOCK], wanted[CPU_SOFTMAX_BLOCK];
    double loss = 0;
    int hits = 0;

    cpu_softmax_block_top(t, &work->at, span.count, top, wanted);
    cpu_softmax_block_top(x, &work->at, span.count, top, best);
    cpu_softmax_block_sum(x, &work->at, span.count, top, sum);
    block_mix(work, span.offset, span.count, total, mix);
    for (int64_t i = 0; i < span.count; i++) {
        hits += best[i] == wanted[i];
        loss += total[i] * (log((double)sum[i]) + (double)top[i]) - mix[i];
        if (work->kept != NULL) {
            work->kept[2 * (span.row + i)] = top[i];
            work->kept[2 * (span.row + i) + 1] = (float)total[i] / sum[i];
        }
    }
    work->losses[block] = loss;
    work->hits[block] = (uint8_t)hits;
}

void cpu_softmax_soft_blocks_forward(void *context, int64_t first, int64_t last)
{
    for (int64_t block = first; block < last; block++)
        block_forward(context, block);
}

/* dx[k] = exp(x[k] - top) factor - scale s[k] w[k] */
SIMD_CLONES
static void block_slope(const cpu_softmax_work_t *work, int64_t offset,
                        int64_t count, const float *top, const float *factor)
{
    const soft_mix_t how = mix_of(work);

    for (int64_t k = 0; k < work->at.classes; k++) {
        const int64_t at = offset + k * work->at.inner;
        const float *x = work->x + at, *t = work->soft + at;
        const float scale = work->scale, w = cpu_softmax_weight(work, k);
        float *dx = work->dx + at;

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            dx[i] = simd_math_exp(x[i] - top[i]) * factor[i] -
                    scale * ((how.hit * t[i] + how.spread) * w);
    }
}

static void block_backward(const cpu_softmax_work_t *work, int64_t block)
{
    const cpu_softmax_span_t span = cpu_softmax_block_span(&work->at, block);
    float top[CPU_SOFTMAX_BLOCK] = {0}, factor[CPU_SOFTMAX_BLOCK] = {0};

    for (int64_t i = 0; i < span.count; i++) {
        top[i] = work->kept[2 * (span.row + i)];
        factor[i] = work->scale * work->kept[2 * (span.row + i) + 1];
    }
    block_slope(work, span.offset, span.count, top, factor);
}

void cpu_softmax_soft_blocks_backward(void *context, int64_t first,
                                      int64_t last)
{
    for (int64_t block = first; block < last; block++)
        block_backward(context, block);
}
