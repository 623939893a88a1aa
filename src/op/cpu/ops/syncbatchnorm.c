/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * syncbatchnorm of a plain x, channel by channel. A channel consists of runs;
 * the elements of a run are [step] apart. Sums are double, in LANES partial
 * sums, so that every CPU adds in the same order. The workspace has the same
 * content as in ref/syncbatchnorm.c.
 */
#include <math.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_sync.h"
#include "simd/team.h"
#include "simd/vector.h"

#define LANES 8

/* Channel c begins at element c * channel. It has [runs] runs of [n] elements,
 * which begin [apart] elements apart. */
typedef struct cpu_sync {
    int64_t C, channel, runs, apart, n, step;
    const float *x, *dy, *gamma, *beta;
    const double *kept; /* mean [C], inverse [C], M */
    double *sums;       /* [2C] */
    float *to;
} cpu_sync_t;

static cpu_sync_t sync_shape(const op_t *op)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1], space = op_desc_space(in);

    if (space == 1)
        return (cpu_sync_t){
            .C = C, .channel = 1, .runs = 1, .n = in->dims[0], .step = C};
    return (cpu_sync_t){.C = C,
                        .channel = space,
                        .runs = in->dims[0],
                        .apart = C * space,
                        .n = space,
                        .step = 1};
}

static err_code_t cpu_sync_open(op_t *op, err_t *err)
{
    if (op->config.training)
        op->workspace_bytes =
            (4 * (size_t)op->config.in.dims[1] + 1) * sizeof(double);
    return cpu_combine_open(op, true, err);
}

/* Element [c] of [numbers], gamma or beta; [fallback] if the layer has none. */
static float sync_affine(const float *numbers, int64_t c, float fallback)
{
    return numbers == NULL ? fallback : numbers[c];
}

static void cpu_sync_run(const op_t *op, simd_team_body_t *body,
                         cpu_sync_t *work)
{
    simd_team_run(op->config.threads, work->C,
                  1 + CPU_COMBINE_GRAIN / (work->runs * work->n), body, work);
}

/* Offset of run [r] of channel [c]. */
static int64_t sync_run_at(const cpu_sync_t *work, int64_t c, int64_t r)
{
    return c * work->channel + r * work->apart;
}

/* ---- sums ---------------------------------------------------------------- */

typedef struct sync_sums {
    double plain, product;
} sync_sums_t;

/* Add to sums->plain the sum of a, and to sums->product the sum of
 * a * (b - mean), over one run. */
SIMD_CLONES
static void sums_run(const cpu_sync_t *work, const float *a, const float *b,
                     double mean, sync_sums_t *sums)
{
    const int64_t n = work->n, step = work->step;
    double p[LANES] = {0}, q[LANES] = {0};
    int64_t i = 0;

    for (; step == 1 && i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            p[k] += (double)a[i + k];
            q[k] += (double)a[i + k] * ((double)b[i + k] - mean);
        }
    for (; i < n; i++) {
        p[0] += (double)a[i * step];
        q[0] += (double)a[i * step] * ((double)b[i * step] - mean);
    }
    for (int k = 0; k < LANES; k++) {
        sums->plain += p[k];
        sums->product += q[k];
    }
}

static void sums_channel(const cpu_sync_t *work, const float *a, const float *b,
                         int64_t c, double mean)
{
    sync_sums_t sums = {0, 0};

    for (int64_t r = 0; r < work->runs; r++) {
        const int64_t at = sync_run_at(work, c, r);

        sums_run(work, a + at, b + at, mean, &sums);
    }
    work->sums[c] = sums.plain;
    work->sums[work->C + c] = sums.product;
}

static void sums_forward(void *context, int64_t first, int64_t last)
{
    const cpu_sync_t *work = context;

    for (int64_t c = first; c < last; c++)
        sums_channel(work, work->x, work->x, c, 0);
}

static void sums_backward(void *context, int64_t first, int64_t last)
{
    const cpu_sync_t *work = context;

    for (int64_t c = first; c < last; c++) {
        sums_channel(work, work->dy, work->x, c, work->kept[c]);
        work->sums[work->C + c] *= work->kept[work->C + c];
    }
}

/* ---- elements ------------------------------------------------------------ */

/* y = (x - mean) * factor + shift, in channel [c] */
SIMD_CLONES
static void apply_channel(const cpu_sync_t *work, int64_t c, float mean,
                          float factor, float shift)
{
    const int64_t n = work->n, step = work->step;

    for (int64_t r = 0; r < work->runs; r++) {
        const float *x = work->x + sync_run_at(work, c, r);
        float *y = work->to + sync_run_at(work, c, r);

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            y[i * step] = (x[i * step] - mean) * factor + shift;
    }
}

/* Normalise channel [c] by [mean] and [inverse], 1 / deviation. */
static void normalise_channel(const cpu_sync_t *work, int64_t c, float mean,
                              float inverse)
{
    apply_channel(work, c, mean, inverse * sync_affine(work->gamma, c, 1),
                  sync_affine(work->beta, c, 0));
}

static void apply_body(void *context, int64_t first, int64_t last)
{
    const cpu_sync_t *work = context;

    for (int64_t c = first; c < last; c++)
        normalise_channel(work, c, (float)work->kept[c],
                          (float)work->kept[work->C + c]);
}

/* dx = factor * (dy - plain - (x - mean) * product), in channel [c] */
SIMD_CLONES
static void dx_channel(const cpu_sync_t *work, int64_t c)
{
    const double M = work->kept[2 * work->C];
    const double inverse = work->kept[work->C + c];
    const float mean = (float)work->kept[c];
    const float factor = (float)inverse * sync_affine(work->gamma, c, 1);
    const float plain = (float)(work->sums[c] / M);
    const float product = (float)(work->sums[work->C + c] * inverse / M);
    const int64_t n = work->n, step = work->step;

    for (int64_t r = 0; r < work->runs; r++) {
        const int64_t at = sync_run_at(work, c, r);
        const float *x = work->x + at, *dy = work->dy + at;
        float *dx = work->to + at;

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dx[i * step] = factor * (dy[i * step] - plain -
                                     (x[i * step] - mean) * product);
    }
}

static void dx_body(void *context, int64_t first, int64_t last)
{
    for (int64_t c = first; c < last; c++)
        dx_channel(context, c);
}

/* ---- calls --------------------------------------------------------------- */

static err_code_t statistics(op_t *op, const op_args_t *args, cpu_sync_t *work,
                             double *kept, err_t *err)
{
    const int64_t C = work->C;
    err_code_t rc;

    work->sums = kept;
    cpu_sync_run(op, sums_forward, work);
    for (int64_t c = 0; c < 2 * C; c++)
        args->moments[c] = kept[c];
    kept[2 * C] = (double)(work->runs * work->n);
    rc = op_reduce_small(args, kept, 2 * (size_t)C + 1, err);
    for (int64_t c = 0; c < C && rc == ERR_OK; c++)
        op_sync_moments(kept, C, c, op->config.epsilon);
    return rc;
}

/* Evaluation: the factor of each channel is computed here and not stored. */
static void apply_running(const op_t *op, const op_args_t *args,
                          const cpu_sync_t *work)
{
    for (int64_t c = 0; c < work->C; c++) {
        const double inverse =
            1 / sqrt((double)args->running_var[c] + op->config.epsilon);

        normalise_channel(work, c, args->running_mean[c], (float)inverse);
    }
}

static err_code_t cpu_sync_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);
    cpu_sync_t work = sync_shape(op);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.to = args->y;
    work.gamma = args->params[0];
    work.beta = args->params[1];
    work.kept = args->workspace;
    if (!op->config.training) {
        apply_running(op, args, &work);
        return ERR_OK;
    }
    rc = statistics(op, args, &work, args->workspace, err);
    if (rc == ERR_OK)
        cpu_sync_run(op, apply_body, &work);
    return rc;
}

static void own_gradients(const cpu_sync_t *work, const op_args_t *args)
{
    float *dgamma = args->dparams[0], *dbeta = args->dparams[1];

    for (int64_t c = 0; c < work->C && dgamma != NULL; c++) {
        dbeta[c] = (float)work->sums[c];
        dgamma[c] = (float)work->sums[work->C + c];
    }
}

static err_code_t cpu_sync_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);
    cpu_sync_t work = sync_shape(op);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.dy = args->dy;
    work.gamma = args->params[0];
    work.kept = args->workspace;
    work.sums = (double *)args->workspace + 2 * work.C + 1;
    cpu_sync_run(op, sums_backward, &work);
    own_gradients(&work, args);
    rc = op_reduce_small(args, work.sums, 2 * (size_t)work.C, err);
    if (rc != ERR_OK || !op->config.need_dx)
        return rc;
    work.to = cpu_combine_place(op, args, 0);
    cpu_sync_run(op, dx_body, &work);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_syncbatchnorm_kernel = {
    .open = cpu_sync_open,
    .close = cpu_combine_close,
    .forward = cpu_sync_forward,
    .backward = cpu_sync_backward,
};
