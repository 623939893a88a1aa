/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy where positions are adjacent in memory, as in [N,C,H,W]. A
 * block of positions is read three times for all classes: for the maximum, the
 * sum and the gradient. The innermost loop runs over positions and is
 * vectorised.
 */
#include "op/cpu/ops/softmax.h"
#include "op/op_loss.h"
#include "simd/vector.h"

/* Number of blocks in one sample. */
static int64_t blocks_a_sample(const op_classes_t *at)
{
    return (at->inner + CPU_SOFTMAX_BLOCK - 1) / CPU_SOFTMAX_BLOCK;
}

int64_t cpu_softmax_blocks(const op_classes_t *at)
{
    return at->rows / at->inner * blocks_a_sample(at);
}

cpu_softmax_span_t cpu_softmax_block_span(const op_classes_t *at, int64_t block)
{
    int64_t sample = block / blocks_a_sample(at);
    int64_t begin = block % blocks_a_sample(at) * CPU_SOFTMAX_BLOCK;
    int64_t left = at->inner - begin;

    return (cpu_softmax_span_t){
        .row = sample * at->inner + begin,
        .count = left < CPU_SOFTMAX_BLOCK ? left : CPU_SOFTMAX_BLOCK,
        .offset = sample * at->classes * at->inner + begin};
}

SIMD_CLONES
void cpu_softmax_block_top(const float *x, const op_classes_t *at,
                           int64_t count, float *top, int32_t *best)
{
    for (int64_t i = 0; i < count; i++) {
        top[i] = x[i];
        best[i] = 0;
    }
    for (int64_t k = 1; k < at->classes; k++) {
        const float *row = x + k * at->inner;

        for (int64_t i = 0; i < count; i++) {
            best[i] = row[i] > top[i] ? (int32_t)k : best[i];
            top[i] = row[i] > top[i] ? row[i] : top[i];
        }
    }
}

SIMD_CLONES
void cpu_softmax_block_sum(const float *x, const op_classes_t *at,
                           int64_t count, const float *top, float *sum)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = 0;
    for (int64_t k = 0; k < at->classes; k++)
        for (int64_t i = 0; i < count; i++)
            sum[i] += simd_math_exp(x[k * at->inner + i] - top[i]);
}

/* For each position: sum_k w[k] x[k]. */
SIMD_CLONES
static void block_mix(const cpu_softmax_work_t *work, const float *x,
                      int64_t count, double *mix)
{
    for (int64_t i = 0; i < count; i++)
        mix[i] = 0;
    for (int64_t k = 0; k < work->at.classes; k++) {
        double weight = (double)cpu_softmax_weight(work, k);

        for (int64_t i = 0; i < count; i++)
            mix[i] += weight * (double)x[k * work->at.inner + i];
    }
}

static void block_forward(const cpu_softmax_work_t *work, int64_t block)
{
    const cpu_softmax_span_t span = cpu_softmax_block_span(&work->at, block);
    const float *x = work->x + span.offset;
    float top[CPU_SOFTMAX_BLOCK] = {0}, sum[CPU_SOFTMAX_BLOCK];
    double mix[CPU_SOFTMAX_BLOCK] = {0}, loss = 0;
    int32_t best[CPU_SOFTMAX_BLOCK];
    int hits = 0;

    cpu_softmax_block_top(x, &work->at, span.count, top, best);
    cpu_softmax_block_sum(x, &work->at, span.count, top, sum);
    if (work->smooth.spread > 0)
        block_mix(work, x, span.count, mix);
    for (int64_t i = 0; i < span.count; i++) {
        int64_t target = work->target[span.row + i];

        if (work->kept != NULL) {
            work->kept[2 * (span.row + i)] = top[i];
            work->kept[2 * (span.row + i) + 1] = 1 / sum[i];
        }
        if (cpu_softmax_ignored(work, target))
            continue;
        hits += best[i] == target;
        loss +=
            cpu_softmax_loss(work, target, log((double)sum[i]) + (double)top[i],
                             (double)x[target * work->at.inner + i], mix[i]);
    }
    work->losses[block] = loss;
    work->hits[block] = (uint8_t)hits;
}

void cpu_softmax_blocks_forward(void *context, int64_t first, int64_t last)
{
    for (int64_t block = first; block < last; block++)
        block_forward(context, block);
}

/* dx[k] = exp(x[k] - top) factor - even w[k] */
SIMD_CLONES
static void block_slope(const cpu_softmax_work_t *work,
                        const cpu_softmax_span_t *span, const float *top,
                        const float *factor, const float *even)
{
    const int64_t count = span->count;

    for (int64_t k = 0; k < work->at.classes; k++) {
        const int64_t at = span->offset + k * work->at.inner;
        const float *x = work->x + at;
        float *dx = work->dx + at;
        float weight = cpu_softmax_weight(work, k);

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            dx[i] = simd_math_exp(x[i] - top[i]) * factor[i] - even[i] * weight;
    }
}

static void block_backward(const cpu_softmax_work_t *work, int64_t block)
{
    const cpu_softmax_span_t span = cpu_softmax_block_span(&work->at, block);
    const op_smooth_t *smooth = &work->smooth;
    float *dx = work->dx + span.offset;
    float top[CPU_SOFTMAX_BLOCK] = {0}, factor[CPU_SOFTMAX_BLOCK] = {0};
    float even[CPU_SOFTMAX_BLOCK] = {0}, hit[CPU_SOFTMAX_BLOCK] = {0};

    for (int64_t i = 0; i < span.count; i++) {
        int64_t row = span.row + i, target = work->target[row];
        bool ignored = cpu_softmax_ignored(work, target);
        float scale = ignored ? 0 : work->scale;

        hit[i] = ignored ? 0
                         : scale * (float)smooth->hit *
                               cpu_softmax_weight(work, target);
        even[i] = scale * (float)smooth->spread;
        top[i] = work->kept[2 * row];
        factor[i] =
            work->kept[2 * row + 1] * (hit[i] + even[i] * (float)smooth->sum);
    }
    block_slope(work, &span, top, factor, even);
    for (int64_t i = 0; i < span.count; i++)
        if (hit[i] != 0)
            dx[work->target[span.row + i] * work->at.inner + i] -= hit[i];
}

void cpu_softmax_blocks_backward(void *context, int64_t first, int64_t last)
{
    for (int64_t block = first; block < last; block++)
        block_backward(context, block);
}
