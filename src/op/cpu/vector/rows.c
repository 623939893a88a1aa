/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/vector/rows.h"

#include "simd/vector.h"

SIMD_CLONES
void cpu_row_add(float *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

SIMD_CLONES
void cpu_column_sums_body(void *context, int64_t first, int64_t last)
{
    const cpu_column_sums_t *sums = context;
    float *restrict to = sums->to;

    for (int64_t i = first; i < last; i++)
        to[i] = 0;
    for (int64_t row = 0; row < sums->rows; row++) {
        const float *from = sums->from + row * sums->columns;

        for (int64_t i = first; i < last; i++)
            to[i] += from[i];
    }
}
