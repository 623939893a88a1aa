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

SIMD_CLONES
static void norm_apply(const float *x, float *y, int64_t n, float mean,
                       float factor, const float *gamma, const float *beta,
                       int step)
{
    if (step == 1 && beta != NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
    } else if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * gamma[i];
    } else {
        float scale = factor * gamma[0];
        float shift = beta == NULL ? 0 : beta[0];

        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * scale + shift;
    }
}

/* Write segment [k] of row [r] of y; it begins [at] elements into the row. */
static void norm_write(const cpu_norm_work_t *work, int64_t r, int64_t k,
                       int64_t at, float mean, float factor)
{
    static const float one = 1;
    const int64_t p = norm_param(work, r, k), n = work->segment;
    const float *gamma = work->gamma == NULL ? &one : work->gamma + p;
    const float *beta = work->beta == NULL ? NULL : work->beta + p;
    const int64_t from = r * work->rows.length + at;
    float buffer[CPU_CHUNK];
    int64_t count;

    for (int64_t i = 0; i < n; i += count) {
        const int64_t param = i * work->step;

        count = cpu_chunk_count(i, n, work->narrow);
        norm_apply(work->x + from + i,
                   cpu_chunk_place(work->y, from + i, work->narrow, buffer),
                   count, mean, factor, gamma + param,
                   beta == NULL ? NULL : beta + param, work->step);
        cpu_chunk_flush(work->y, from + i, count, work->narrow, buffer);
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
        float mean = 0, factor;

        if (work->centred)
            mean = (float)(cpu_norm_sums_x(x, F, 0).plain / (double)F);
        factor = (float)(cpu_norm_sums_x(x, F, mean).product / (double)F);
        factor = 1 / sqrtf(factor + work->epsilon);
        for (int64_t at = 0, k = 0; at < F; at += work->segment, k++)
            norm_write(work, r, k, at, mean, factor);
        if (work->kept != NULL) {
            work->kept[2 * r] = mean;
            work->kept[2 * r + 1] = factor;
        }
    }
}

/* dx = (g - plain - xhat * product) / deviation */
SIMD_CLONES
static void norm_dx(const float *x, const float *dy, float *dx, int64_t n,
                    const float *kept, const float *gamma, int step,
                    float plain, float product, bool adds)
{
    const float mean = kept[0], factor = kept[1], same = gamma[0];

    if (step == 1 && adds) {
        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i] +=
                (dy[i] * gamma[i] - plain - (x[i] - mean) * factor * product) *
                factor;
    } else if (step == 1) {
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

/* The sums of segment [k] of row [r], whose first element is number [at] of x.
 * A parameter that the whole segment shares is multiplied in last, after the
 * sums are stored for its own gradient. */
static cpu_norm_sums_t norm_sums_segment(const cpu_norm_work_t *work, int64_t r,
                                         int64_t k, int64_t at,
                                         const float *gamma)
{
    const int64_t segments = work->rows.length / work->segment;
    cpu_norm_sums_t sums = cpu_norm_sums(work->x + at, work->dy + at,
                                         work->step == 1 ? gamma : NULL,
                                         work->segment, work->kept + 2 * r);

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
    static const float one = 1;
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    for (int64_t r = first; r < last; r++) {
        const float *x = work->x + r * F, *dy = work->dy + r * F;
        const float *kept = work->kept + 2 * r;
        double plain = 0, product = 0;

        for (int pass = 0; pass < 2; pass++)
            for (int64_t at = 0, k = 0; at < F; at += work->segment, k++) {
                const float *gamma = work->gamma == NULL
                                         ? &one
                                         : work->gamma + norm_param(work, r, k);

                if (pass == 0) {
                    cpu_norm_sums_t sums =
                        norm_sums_segment(work, r, k, r * F + at, gamma);

                    plain += work->centred ? sums.plain / (double)F : 0;
                    product += sums.product / (double)F;
                } else {
                    norm_dx(x + at, dy + at, work->dx + r * F + at,
                            work->segment, kept, gamma, work->step,
                            (float)plain, (float)product, work->adds);
                }
            }
    }
}
