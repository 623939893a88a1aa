/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * layernorm, rmsnorm, groupnorm, instancenorm on plain tensors (ref/norm.c has
 * the formulas). A row is one thread's, and stays in its cache between the
 * passes over it; the gradients of the parameters are a second loop, in which a
 * parameter is one thread's and rows are added in their order. So the number of
 * threads does not show. A row is a list of segments whose elements have one
 * parameter each (space = 1) or all the same one.
 *
 * Sums run over CPU_LANES floats in stretches of CPU_STRETCH elements, which
 * are added in double. The workspace keeps mean and 1/deviation of each row.
 */
#include "op/cpu/combine.h"
#include "op/cpu/cpu.h"
#include "op/cpu/math.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

#define CPU_STRETCH 2048
/* Elements that are worth a thread. */
#define CPU_NORM_GRAIN 8192
/* Columns whose parameter gradients are summed side by side; and the rows that
 * are added in float before the sum goes on in double. */
#define CPU_COLUMNS 64
#define CPU_ROWS 128

typedef struct cpu_norm_work {
    op_rows_t rows;
    bool centred;    /* not rmsnorm */
    int64_t segment; /* elements of a segment */
    int step;        /* of gamma from element to element: 1, or 0 */
    float epsilon;
    const float *x, *dy, *gamma, *beta;
    float *to;   /* y or dx */
    float *kept; /* [rows,2], NULL in evaluation */
    float *dgamma, *dbeta;
} cpu_norm_work_t;

/* ---- sums ---------------------------------------------------------------- */

/* Sums over a segment: of a, and of a times b. */
typedef struct cpu_norm_sums {
    double plain, product;
} cpu_norm_sums_t;

/* g = dy * gamma against (x - mean) * factor; without dy, g = x - mean. */
CPU_INLINE cpu_norm_sums_t norm_sums(const float *x, const float *dy,
                                     const float *gamma, int step, int64_t n,
                                     float mean, float factor)
{
    float plain[CPU_LANES] = {0}, product[CPU_LANES] = {0};
    cpu_norm_sums_t sums = {0, 0};
    int64_t i = 0;

    for (; i + CPU_LANES <= n; i += CPU_LANES)
        for (int k = 0; k < CPU_LANES; k++) {
            float hat = (x[i + k] - mean) * factor;
            float g = dy == NULL ? hat : dy[i + k] * gamma[(i + k) * step];

            plain[k] += g;
            product[k] += g * hat;
        }
    for (int k = 0; k < CPU_LANES; k++) {
        sums.plain += (double)plain[k];
        sums.product += (double)product[k];
    }
    for (; i < n; i++) {
        float hat = (x[i] - mean) * factor;
        float g = dy == NULL ? hat : dy[i] * gamma[i * step];

        sums.plain += (double)g;
        sums.product += (double)(g * hat);
    }
    return sums;
}

CPU_CLONES
static cpu_norm_sums_t norm_sums_x(const float *x, int64_t n, float mean)
{
    return norm_sums(x, NULL, NULL, 0, n, mean, 1);
}

CPU_CLONES
static cpu_norm_sums_t norm_sums_each(const float *x, const float *dy,
                                      const float *gamma, int64_t n, float mean,
                                      float factor)
{
    return norm_sums(x, dy, gamma, 1, n, mean, factor);
}

CPU_CLONES
static cpu_norm_sums_t norm_sums_same(const float *x, const float *dy,
                                      const float *gamma, int64_t n, float mean,
                                      float factor)
{
    return norm_sums(x, dy, gamma, 0, n, mean, factor);
}

static int64_t norm_stretch(int64_t left)
{
    return left < CPU_STRETCH ? left : CPU_STRETCH;
}

static cpu_norm_sums_t norm_sums_long_x(const float *x, int64_t n, float mean)
{
    cpu_norm_sums_t all = {0, 0};

    for (int64_t i = 0; i < n; i += CPU_STRETCH) {
        cpu_norm_sums_t part = norm_sums_x(x + i, norm_stretch(n - i), mean);

        all.plain += part.plain;
        all.product += part.product;
    }
    return all;
}

static cpu_norm_sums_t norm_sums_long(const float *x, const float *dy,
                                      const float *gamma, int step, int64_t n,
                                      const float *kept)
{
    cpu_norm_sums_t all = {0, 0};

    for (int64_t i = 0; i < n; i += CPU_STRETCH) {
        int64_t count = norm_stretch(n - i);
        cpu_norm_sums_t part =
            step == 1
                ? norm_sums_each(x + i, dy + i, gamma + i, count, kept[0],
                                 kept[1])
                : norm_sums_same(x + i, dy + i, gamma, count, kept[0], kept[1]);

        all.plain += part.plain;
        all.product += part.product;
    }
    return all;
}

/* ---- rows ---------------------------------------------------------------- */

/* Where the parameters of segment [k] of row [r] begin. */
static int64_t norm_param(const cpu_norm_work_t *work, int64_t r, int64_t k)
{
    const op_rows_t *rows = &work->rows;

    return r % rows->groups * (rows->length / rows->space) + k;
}

CPU_CLONES
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

static void norm_body_forward(void *context, int64_t first, int64_t last)
{
    static const float one = 1;
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

    for (int64_t r = first; r < last; r++) {
        const float *x = work->x + r * F;
        float mean = 0, factor;

        if (work->centred)
            mean = (float)(norm_sums_long_x(x, F, 0).plain / (double)F);
        factor = (float)(norm_sums_long_x(x, F, mean).product / (double)F);
        factor = 1 / sqrtf(factor + work->epsilon);
        for (int64_t at = 0, k = 0; at < F; at += work->segment, k++) {
            int64_t p = norm_param(work, r, k);

            norm_apply(x + at, work->to + r * F + at, work->segment, mean,
                       factor, work->gamma == NULL ? &one : work->gamma + p,
                       work->beta == NULL ? NULL : work->beta + p, work->step);
        }
        if (work->kept != NULL) {
            work->kept[2 * r] = mean;
            work->kept[2 * r + 1] = factor;
        }
    }
}

/* dx = (g - plain - xhat * product) / deviation */
CPU_CLONES
static void norm_pull(const float *x, const float *dy, float *dx, int64_t n,
                      const float *kept, const float *gamma, int step,
                      float plain, float product)
{
    float mean = kept[0], factor = kept[1];

    if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            dx[i] =
                (dy[i] * gamma[i] - plain - (x[i] - mean) * factor * product) *
                factor;
    } else {
        for (int64_t i = 0; i < n; i++)
            dx[i] =
                (dy[i] * gamma[0] - plain - (x[i] - mean) * factor * product) *
                factor;
    }
}

static void norm_body_backward(void *context, int64_t first, int64_t last)
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
                        norm_sums_long(x + at, dy + at, gamma, work->step,
                                       work->segment, kept);

                    plain += work->centred ? sums.plain / (double)F : 0;
                    product += sums.product / (double)F;
                } else {
                    norm_pull(x + at, dy + at, work->to + r * F + at,
                              work->segment, kept, gamma, work->step,
                              (float)plain, (float)product);
                }
            }
    }
}

/* ---- parameters ---------------------------------------------------------- */

/* dgamma and dbeta of [n] neighbouring columns from [x] and [dy] on, which lie
 * in every [stride]th of [rows] rows of [F] elements. */
CPU_CLONES
static void norm_columns(const float *x, const float *dy, const float *kept,
                         int64_t rows, int64_t stride, int64_t F, int64_t n,
                         double dgamma[CPU_COLUMNS], double dbeta[CPU_COLUMNS])
{
    for (int64_t from = 0; from < rows; from += CPU_ROWS * stride) {
        float products[CPU_COLUMNS] = {0}, sums[CPU_COLUMNS] = {0};

        for (int64_t r = from; r < rows && r < from + CPU_ROWS * stride;
             r += stride)
            for (int64_t j = 0; j < n; j++) {
                float g = dy[r * F + j];

                sums[j] += g;
                products[j] +=
                    g * (x[r * F + j] - kept[2 * r]) * kept[2 * r + 1];
            }
        for (int64_t j = 0; j < n; j++) {
            dgamma[j] += (double)products[j];
            dbeta[j] += (double)sums[j];
        }
    }
}

/* Of the parameters [p, p+n) with an element each, all of one group. */
static void norm_params_each(const cpu_norm_work_t *work, int64_t p, int64_t n)
{
    const int64_t F = work->rows.length, group = p / F;
    double dgamma[CPU_COLUMNS] = {0}, dbeta[CPU_COLUMNS] = {0};
    const int64_t at = group * F + p % F;

    norm_columns(work->x + at, work->dy + at, work->kept + 2 * group,
                 work->rows.rows - group, work->rows.groups, F, n, dgamma,
                 dbeta);
    for (int64_t j = 0; j < n; j++) {
        work->dgamma[p + j] = (float)dgamma[j];
        if (work->dbeta != NULL)
            work->dbeta[p + j] = (float)dbeta[j];
    }
}

/* Of the parameter [p] of a whole segment. */
static void norm_params_same(const cpu_norm_work_t *work, int64_t p)
{
    static const float one = 1;
    const int64_t F = work->rows.length, S = work->rows.space;
    double dgamma = 0, dbeta = 0;

    for (int64_t r = p / (F / S); r < work->rows.rows; r += work->rows.groups) {
        int64_t at = r * F + p % (F / S) * S;
        cpu_norm_sums_t sums = norm_sums_long(work->x + at, work->dy + at, &one,
                                              0, S, work->kept + 2 * r);

        dbeta += sums.plain;
        dgamma += sums.product;
    }
    work->dgamma[p] = (float)dgamma;
    if (work->dbeta != NULL)
        work->dbeta[p] = (float)dbeta;
}

static void norm_body_params(void *context, int64_t first, int64_t last)
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

/* ---- calls --------------------------------------------------------------- */

static err_code_t cpu_norm_open(op_t *op, err_t *err)
{
    if (op->config.training)
        op->workspace_bytes =
            2 * (size_t)op_norm_rows(&op->config).rows * sizeof(float);
    return cpu_combine_open(op, true, err);
}

static cpu_norm_work_t norm_work(const op_t *op, const op_args_t *args)
{
    cpu_norm_work_t work = {
        .rows = op_norm_rows(&op->config),
        .centred = op->config.kind != OP_RMSNORM,
        .epsilon = (float)op->config.epsilon,
        .gamma = args->params[0],
        .beta = args->params[1],
        .kept = op->config.training ? args->workspace : NULL,
    };

    work.step = work.rows.space == 1 && work.gamma != NULL;
    work.segment = work.gamma == NULL || work.step == 1 ? work.rows.length
                                                        : work.rows.space;
    return work;
}

static int64_t norm_grain(int64_t elems)
{
    return elems >= CPU_NORM_GRAIN ? 1 : CPU_NORM_GRAIN / elems;
}

static err_code_t cpu_norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_work_t work = norm_work(op, args);
    const float *x[OP_INPUTS_MAX];
    err_code_t code = cpu_combine_read(op, args, x, err);

    if (code != ERR_OK)
        return code;
    work.x = x[0];
    work.to = args->y;
    cpu_team_run(op->config.threads, work.rows.rows,
                 norm_grain(work.rows.length), norm_body_forward, &work);
    return ERR_OK;
}

static err_code_t cpu_norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_combine_t *combine = op->state;
    cpu_norm_work_t work = norm_work(op, args);
    const op_rows_t *rows = &work.rows;
    int64_t params = rows->groups * (rows->length / rows->space);
    const float *x[OP_INPUTS_MAX];
    err_code_t code = cpu_combine_read(op, args, x, err);

    if (code != ERR_OK)
        return code;
    work.x = x[0];
    work.dy = args->dy;
    work.dgamma = args->dparams[0];
    work.dbeta = args->dparams[1];
    if (op->config.norm.affine)
        cpu_team_run(op->config.threads, params,
                     norm_grain(op_desc_elems(&op->config.in) / params),
                     norm_body_params, &work);
    if (!op->config.need_dx)
        return ERR_OK;
    work.to = cpu_port_place(&combine->grad[0], args, args->dx);
    cpu_team_run(op->config.threads, rows->rows, norm_grain(rows->length),
                 norm_body_backward, &work);
    return cpu_port_flush(&combine->grad[0], &combine->room, args, args->dx,
                          err);
}

const op_kernel_t cpu_norm_kernel = {
    .open = cpu_norm_open,
    .close = cpu_combine_close,
    .forward = cpu_norm_forward,
    .backward = cpu_norm_backward,
};
