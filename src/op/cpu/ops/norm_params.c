/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The gradients of the parameters. CPU_NORM_ROWS rows are summed in order in
 * float, and these sums are added in double. This happens either in the pass
 * that computes dx, where a thread has a range of rows, or in a separate loop,
 * where a thread has a range of parameters. Both give the same bits, with any
 * number of threads.
 */
#include <string.h>

#include "base/check.h"
#include "op/cpu/ops/norm.h"
#include "simd/vector.h"

/* Columns that are summed together. */
#define CPU_COLUMNS 64

/* Add to dgamma and dbeta of the parameters [p, p+n), n adjacent columns of one
 * group. Row r belongs to group r % groups. */
SIMD_CLONES
static void norm_columns(const cpu_norm_work_t *work, int64_t p, int64_t n,
                         double dgamma[CPU_COLUMNS], double dbeta[CPU_COLUMNS])
{
    const int64_t F = work->rows.length, group = p / F;
    const int64_t rows = work->rows.rows, stride = work->rows.groups;
    const float *x = work->x + p % F, *dy = work->dy + p % F;
    const cpu_norm_row_t *kept = work->kept;

    for (int64_t from = group; from < rows; from += CPU_NORM_ROWS * stride) {
        float products[CPU_COLUMNS] = {0}, sums[CPU_COLUMNS] = {0};

        for (int64_t r = from; r < rows && r < from + CPU_NORM_ROWS * stride;
             r += stride)
            for (int64_t j = 0; j < n; j++) {
                float g = dy[r * F + j];

                sums[j] += g;
                products[j] +=
                    g * (x[r * F + j] - kept[r].mean) * kept[r].factor;
            }
        for (int64_t j = 0; j < n; j++) {
            dgamma[j] += (double)products[j];
            dbeta[j] += (double)sums[j];
        }
    }
}

/* Gradients of the parameters [p, p+n) of one group, where each element of a
 * row has its own parameter. */
static void norm_params_each(const cpu_norm_work_t *work, int64_t p, int64_t n)
{
    double dgamma[CPU_COLUMNS] = {0}, dbeta[CPU_COLUMNS] = {0};

    norm_columns(work, p, n, dgamma, dbeta);
    for (int64_t j = 0; j < n; j++) {
        work->dgamma[p + j] = (float)dgamma[j];
        if (work->dbeta != NULL)
            work->dbeta[p + j] = (float)dbeta[j];
    }
}

/* Gradients of parameter [p], which a whole segment shares. */
static void norm_params_same(const cpu_norm_work_t *work, int64_t p)
{
    const int64_t F = work->rows.length, S = work->rows.space;
    const int64_t segments = F / S, k = p % segments;
    double dgamma = 0, dbeta = 0;

    for (int64_t r = p / segments; r < work->rows.rows;
         r += work->rows.groups) {
        const int64_t at = r * F + k * S;

        if (work->sums == NULL) {
            cpu_norm_sums_t sums = cpu_norm_sums(work->x + at, work->dy + at,
                                                 NULL, S, work->kept[r]);

            dgamma += sums.product;
            dbeta += sums.plain;
        } else {
            dgamma += work->sums[2 * (r * segments + k)];
            dbeta += work->sums[2 * (r * segments + k) + 1];
        }
    }
    work->dgamma[p] = (float)dgamma;
    if (work->dbeta != NULL)
        work->dbeta[p] = (float)dbeta;
}

/* Add row [r] to the sums for dgamma and dbeta. */
SIMD_CLONES
static void norm_add_row(const cpu_norm_work_t *work, int64_t r,
                         float *restrict products, float *restrict sums)
{
    const int64_t F = work->rows.length;
    const float *x = work->x + r * F, *dy = work->dy + r * F;
    const float mean = work->kept[r].mean, factor = work->kept[r].factor;

    for (int64_t j = 0; j < F; j++) {
        float g = dy[j];

        sums[j] += g;
        products[j] += g * (x[j] - mean) * factor;
    }
}

void cpu_norm_body_all(void *context, int64_t first, int64_t last)
{
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    for (int64_t part = first; part < last; part++) {
        const int64_t from = part * CPU_NORM_ROWS;
        const int64_t left = work->rows.rows - from;
        const int64_t to = from + (left < CPU_NORM_ROWS ? left : CPU_NORM_ROWS);
        float *products = work->parts + 2 * part * F;

        check(from < to, "part %d has no rows", (int)part);
        memset(products, 0, 2 * (size_t)F * sizeof(float));
        for (int64_t r = from; r < to; r++) {
            cpu_norm_body_backward(context, r, r + 1);
            norm_add_row(work, r, products, products + F);
        }
    }
}

void cpu_norm_add_parts(const cpu_norm_work_t *work, int64_t parts)
{
    const int64_t F = work->rows.length;

    check(parts * CPU_NORM_ROWS >= work->rows.rows &&
              (parts - 1) * CPU_NORM_ROWS < work->rows.rows,
          "%d parts of %d rows", (int)parts, (int)work->rows.rows);
    for (int64_t j = 0; j < F; j++) {
        double dgamma = 0, dbeta = 0;

        for (int64_t part = 0; part < parts; part++) {
            dgamma += (double)work->parts[2 * part * F + j];
            dbeta += (double)work->parts[(2 * part + 1) * F + j];
        }
        work->dgamma[j] = (float)dgamma;
        if (work->dbeta != NULL)
            work->dbeta[j] = (float)dbeta;
    }
}

void cpu_norm_body_params(void *context, int64_t first, int64_t last)
{
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    for (int64_t p = first; p < last && work->step == 0; p++)
        norm_params_same(work, p);
    for (int64_t p = first; p < last && work->step == 1;) {
        int64_t n = F - p % F < CPU_COLUMNS ? F - p % F : CPU_COLUMNS;

        n = last - p < n ? last - p : n;
        norm_params_each(work, p, n);
        p += n;
    }
}
