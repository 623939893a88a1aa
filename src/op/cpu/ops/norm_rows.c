/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The norms, row by row: y, and the gradient of x. */
#include "base/check.h"
#include "op/cpu/ops/norm.h"

#include "op/cpu/vector/chunk.h"
#include "op/op_geometry.h"
#include "simd/math.h"
#include "simd/vector.h"

/* Index of the first parameter of segment [k] of row [r]. */
static int64_t norm_param(const cpu_norm_work_t *work, int64_t r, int64_t k)
{
    const op_rows_t *rows = &work->rows;

    return r % rows->groups * (rows->length / rows->space) + k;
}

/* gamma from parameter [p] on. */
static const float *norm_gamma(const cpu_norm_work_t *work, int64_t p)
{
    static const float one = 1;

    return work->gamma == NULL ? &one : work->gamma + p;
}

/* Elements [0, n) of a segment: y = (x - mean) * factor * gamma + beta. [beta]
 * may be NULL. With step 0 all elements share gamma and beta. */
typedef struct norm_params {
    const float *gamma, *beta;
    int step;
} norm_params_t;

SIMD_CLONES
static void norm_apply(const float *x, float *y, int64_t n,
                       const cpu_norm_row_t *row, const norm_params_t *params)
{
    const float *gamma = params->gamma, *beta = params->beta;
    const float mean = row->mean, factor = row->factor;

    if (params->step == 1 && beta != NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
    } else if (params->step == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * gamma[i];
    } else {
        float scale = factor * gamma[0];
        float shift = beta == NULL ? 0 : beta[0];

        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * scale + shift;
    }
}

/* Write segment [k] of row [r] of y. */
static void norm_write(const cpu_norm_work_t *work, int64_t r, int64_t k,
                       const cpu_norm_row_t *row)
{
    const int64_t n = work->segment;
    const int64_t p = norm_param(work, r, k);
    const float *gamma = norm_gamma(work, p);
    const float *beta = work->beta == NULL ? NULL : work->beta + p;
    const int64_t from = r * work->rows.length + k * n;
    float buffer[CPU_CHUNK];
    int64_t count;

    for (int64_t i = 0; i < n; i += count) {
        const int64_t param = i * work->step;
        const norm_params_t params = {
            gamma + param, beta == NULL ? NULL : beta + param, work->step};

        count = cpu_chunk_count(i, n, work->bf16);
        norm_apply(work->x + from + i,
                   cpu_chunk_place(work->y, from + i, work->bf16, buffer),
                   count, row, &params);
        cpu_chunk_flush(work->y, from + i, count, work->bf16, buffer);
    }
}

void cpu_norm_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    check(F % work->segment == 0, "rows of %d in segments of %d", (int)F,
          (int)work->segment);
    for (int64_t r = first; r < last; r++) {
        const float *x = work->x + r * F;
        cpu_norm_row_t row = {0, 0};
        float variance;

        if (work->centred)
            row.mean = (float)(cpu_norm_sums_x(x, F, 0).plain / (double)F);
        variance = (float)(cpu_norm_sums_x(x, F, row.mean).product / (double)F);
        row.factor = 1 / sqrtf(variance + work->epsilon);
        for (int64_t at = 0, k = 0; at < F; at += work->segment, k++)
            norm_write(work, r, k, &row);
        if (work->kept != NULL)
            work->kept[r] = row;
    }
}

/* In segment [k] of row [r]: dx = (g - plain - xhat * product) / deviation.
 * plain and product are the row's sums, divided by its length. */
SIMD_CLONES
static void norm_dx(const cpu_norm_work_t *work, int64_t r, int64_t k,
                    cpu_norm_sums_t means)
{
    const float *gamma = norm_gamma(work, norm_param(work, r, k));
    const int64_t n = work->segment, at = r * work->rows.length + k * n;
    const float *x = work->x + at, *dy = work->dy + at;
    const float mean = work->kept[r].mean, factor = work->kept[r].factor;
    const float plain = (float)means.plain, product = (float)means.product;
    const float same = gamma[0];
    float *dx = work->dx + at;

    if (work->step == 1 && work->adds) {
        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] +=
                (dy[i] * gamma[i] - plain - (x[i] - mean) * factor * product) *
                factor;
    } else if (work->step == 1) {
        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] =
                (dy[i] * gamma[i] - plain - (x[i] - mean) * factor * product) *
                factor;
    } else {
        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] = (dy[i] * same - plain - (x[i] - mean) * factor * product) *
                    factor;
    }
}

/* The sums of segment [k] of row [r]. A parameter that the whole segment shares
 * is multiplied in last, after the sums are stored for its own gradient. */
static cpu_norm_sums_t norm_sums_segment(const cpu_norm_work_t *work, int64_t r,
                                         int64_t k)
{
    const float *gamma = norm_gamma(work, norm_param(work, r, k));
    const int64_t segments = work->rows.length / work->segment;
    const int64_t at = r * work->rows.length + k * work->segment;
    cpu_norm_sums_t sums = cpu_norm_sums(work->x + at, work->dy + at,
                                         work->step == 1 ? gamma : NULL,
                                         work->segment, work->kept[r]);

    if (work->sums != NULL) {
        work->sums[2 * (r * segments + k)] = sums.product;
        work->sums[2 * (r * segments + k) + 1] = sums.plain;
    }
    if (work->step == 0) {
        sums.plain *= (double)*gamma;
        sums.product *= (double)*gamma;
    }
    return sums;
}

void cpu_norm_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    for (int64_t r = first; r < last; r++) {
        cpu_norm_sums_t means = {0, 0};

        for (int64_t at = 0, k = 0; at < F; at += work->segment, k++) {
            const cpu_norm_sums_t sums = norm_sums_segment(work, r, k);

            means.plain += work->centred ? sums.plain / (double)F : 0;
            means.product += sums.product / (double)F;
        }
        for (int64_t at = 0, k = 0; at < F; at += work->segment, k++)
            norm_dx(work, r, k, means);
    }
}
