/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * layernorm, rmsnorm, groupnorm, instancenorm on plain tensors (ref/norm.c has
 * the formulas). A row is one thread's, and stays in its cache between the
 * passes over it. The workspace keeps mean and 1/deviation of each row.
 */
#include "op/cpu/ops/norm.h"

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/chunk.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Elements that are worth a thread. */
#define CPU_NORM_GRAIN 8192

typedef struct cpu_norm {
    cpu_combine_t combine;
    size_t parts_at; /* of parts or sums in scratch */
} cpu_norm_t;

/* ---- rows ---------------------------------------------------------------- */

/* Where the parameters of segment [k] of row [r] begin. */
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

/* Row r's segment [k] of y, at [at] of the row. */
static void norm_write(const cpu_norm_work_t *work, int64_t r, int64_t k,
                       int64_t at, float mean, float factor)
{
    static const float one = 1;
    const int64_t p = norm_param(work, r, k), n = work->segment;
    const float *gamma = work->gamma == NULL ? &one : work->gamma + p;
    const float *beta = work->beta == NULL ? NULL : work->beta + p;
    const int64_t from = r * work->rows.length + at;
    float room[CPU_CHUNK];
    int64_t count;

    for (int64_t i = 0; i < n; i += count) {
        const int64_t param = i * work->step;

        count = cpu_chunk_count(i, n, work->narrow);
        norm_apply(work->x + from + i,
                   cpu_chunk_place(work->y, from + i, work->narrow, room),
                   count, mean, factor, gamma + param,
                   beta == NULL ? NULL : beta + param, work->step);
        cpu_chunk_flush(work->y, from + i, count, work->narrow, room);
    }
}

static void norm_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_norm_work_t *work = context;
    const int64_t F = work->rows.length;

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
static void norm_pull(const float *x, const float *dy, float *dx, int64_t n,
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

/* The sums of segment [k] of row r, from element [at] of x on. A parameter that
 * a whole segment has is multiplied last, and what it is multiplied with kept
 * for its own gradient. */
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
                    norm_pull(x + at, dy + at, work->dx + r * F + at,
                              work->segment, kept, gamma, work->step,
                              (float)plain, (float)product, work->adds);
                }
            }
    }
}

/* ---- calls --------------------------------------------------------------- */

/* How many stretches of rows a pass for all gradients has; 0: there is none, or
 * the team is larger, and parameters have a loop of their own. */
static int64_t norm_parts(const op_t *op)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    const int64_t parts = (rows.rows + CPU_NORM_ROWS - 1) / CPU_NORM_ROWS;
    const bool can = op->config.training && op->config.need_dx &&
                     op->config.norm.affine && rows.space == 1 &&
                     rows.groups == 1;

    return can && parts >= op->config.threads ? parts : 0;
}

/* Doubles for cpu_norm_body_backward to keep sums in. */
static int64_t norm_sums_count(const op_t *op)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    const bool can = op->config.training && op->config.need_dx &&
                     op->config.norm.affine && rows.space > 1;

    return can ? 2 * rows.rows * (rows.length / rows.space) : 0;
}

static err_code_t cpu_norm_open(op_t *op, err_t *err)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    err_code_t code;
    cpu_norm_t *norm;

    if (op->config.training)
        op->workspace_bytes = 2 * (size_t)rows.rows * sizeof(float);
    code = cpu_combine_open_in(op, sizeof *norm, true, err);
    if (code != ERR_OK)
        return code;
    norm = op->state;
    op->adds_dx = rows.space == 1 && op->config.norm.affine &&
                  norm->combine.grad[0].direct;
    norm->parts_at = mem_round(op->scratch_bytes);
    op->scratch_bytes =
        norm->parts_at +
        2 * (size_t)(norm_parts(op) * rows.length) * sizeof(float) +
        (size_t)norm_sums_count(op) * sizeof(double);
    return ERR_OK;
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
    work.y = args->y;
    work.narrow = op->config.narrow;
    simd_team_run(op->config.threads, work.rows.rows,
                  norm_grain(work.rows.length), norm_body_forward, &work);
    return ERR_OK;
}

/* dx and parameters in loops of their own. */
static void norm_run_apart(const op_t *op, cpu_norm_work_t *work)
{
    const op_rows_t *rows = &work->rows;
    const int64_t params = rows->groups * (rows->length / rows->space);

    if (op->config.need_dx)
        simd_team_run(op->config.threads, rows->rows, norm_grain(rows->length),
                      cpu_norm_body_backward, work);
    if (op->config.norm.affine)
        simd_team_run(op->config.threads, params,
                      norm_grain(op_desc_elems(&op->config.in) / params),
                      cpu_norm_body_params, work);
}

static err_code_t cpu_norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_t *norm = op->state;
    cpu_reorder_t *port = &norm->combine.grad[0];
    cpu_norm_work_t work = norm_work(op, args);
    const int64_t parts = norm_parts(op);
    const float *x[OP_INPUTS_MAX];
    err_code_t code = cpu_combine_read(op, args, x, err);

    if (code != ERR_OK)
        return code;
    work.x = x[0];
    work.dy = args->dy;
    work.dgamma = args->dparams[0];
    work.dbeta = args->dparams[1];
    work.adds = args->add_dx;
    if (op->config.need_dx)
        work.dx = cpu_reorder_place(port, args, args->dx);
    if (norm_sums_count(op) > 0)
        work.sums = (double *)((char *)args->scratch + norm->parts_at);
    if (parts > 0) {
        work.parts = (float *)((char *)args->scratch + norm->parts_at);
        simd_team_run(op->config.threads, parts,
                      1 + CPU_NORM_GRAIN / (CPU_NORM_ROWS * work.rows.length),
                      cpu_norm_body_all, &work);
        cpu_norm_add_parts(&work, parts);
    } else {
        norm_run_apart(op, &work);
    }
    return op->config.need_dx ? cpu_reorder_flush(port, &norm->combine.room,
                                                  args, args->dx, err)
                              : ERR_OK;
}

const op_kernel_t cpu_norm_kernel = {
    .open = cpu_norm_open,
    .close = cpu_combine_close,
    .forward = cpu_norm_forward,
    .backward = cpu_norm_backward,
};
