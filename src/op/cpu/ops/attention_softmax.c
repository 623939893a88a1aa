/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The running softmax of attention. Scores are [keys, queries]; keys are
 * processed one after the other. */
#include "base/check.h"
#include "op/cpu/ops/attention.h"
#include "simd/math.h"
#include "simd/vector.h"

#define BLOCK CPU_ATTENTION_BLOCK

void cpu_attention_start(cpu_attention_columns_t *columns)
{
    for (int i = 0; i < BLOCK; i++) {
        columns->top[i] = -INFINITY;
        columns->sum[i] = 0;
    }
    columns->valid = NULL;
}

float cpu_attention_keep(const cpu_attention_work_t *work,
                         const cpu_attention_columns_t *columns, int64_t at,
                         int64_t i)
{
    const float inverse = columns->sum[i] == 0 ? 0 : 1.0f / columns->sum[i];

    check(at + i < work->a.N * work->a.H * work->a.T, "no row %d to keep",
          (int)(at + i));
    if (work->top != NULL) {
        work->top[at + i] = columns->top[i];
        work->inverse[at + i] = inverse;
    }
    return inverse;
}

SIMD_CLONES
void cpu_attention_softmax(float (*s)[CPU_ATTENTION_BLOCK], int64_t keys,
                           int64_t ahead, float scale,
                           cpu_attention_columns_t *columns)
{
    float most[BLOCK], sum[BLOCK];

    for (int i = 0; i < BLOCK; i++)
        most[i] = columns->top[i];
    for (int32_t j = 0; j < (int32_t)keys; j++) {
        if (cpu_attention_hidden(columns->valid, j))
            continue;
        for (int32_t i = 0; i < BLOCK; i++) {
            s[j][i] *= scale;
            most[i] =
                j < i + (int32_t)ahead && s[j][i] > most[i] ? s[j][i] : most[i];
        }
    }
    for (int i = 0; i < BLOCK; i++) {
        /* If both are -INFINITY, the query has no key yet. */
        const float grown = most[i] > -INFINITY ? columns->top[i] - most[i] : 0;

        columns->factor[i] = simd_math_exp(grown);
        columns->top[i] = most[i];
        sum[i] = columns->sum[i] * columns->factor[i];
    }
    for (int32_t j = 0; j < (int32_t)keys; j++) {
        const int32_t from = cpu_attention_hidden(columns->valid, j)
                                 ? BLOCK
                                 : j - (int32_t)ahead + 1;

        for (int32_t i = 0; i < BLOCK; i++) {
            float p = simd_math_exp(s[j][i] - most[i]);

            s[j][i] = i >= from ? p : 0;
            sum[i] += s[j][i];
        }
    }
    for (int i = 0; i < BLOCK; i++)
        columns->sum[i] = sum[i];
}
