/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * prelu of a plain x, seen as [outer, slopes, inner]. Each run of inner
 * elements has one slope; if the layer has one slope only, a sample is one
 * run. The gradient of the slopes: the sum of each run is written to scratch,
 * double [outer, slopes], then the sums of each slope are added in order, so
 * that no bit depends on the number of threads. With inner = 1 (vectors with a
 * slope for each feature) all slopes of a row are computed together.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Elements summed in float before the sum is added in double. */
#define CHUNK 4096

typedef struct prelu_work {
    int64_t outer, slopes, inner;
    const float *x, *dy, *a;
    float *to;    /* y or dx; NULL: dx is not needed */
    double *sums; /* backward: sums of x dy, [outer, slopes] */
    float *da;
} prelu_work_t;

typedef struct cpu_prelu {
    cpu_combine_t combine;
    size_t sums; /* offset of the sums in scratch */
} cpu_prelu_t;

static prelu_work_t prelu_shape(const op_t *op)
{
    const op_desc_t *in = &op->config.in;
    const bool channels = op->config.channels;

    return (prelu_work_t){.outer = in->dims[0],
                          .slopes = channels ? in->dims[1] : 1,
                          .inner = channels ? op_desc_space(in)
                                            : op_desc_sample(in)};
}

static err_code_t cpu_prelu_open(op_t *op, err_t *err)
{
    const prelu_work_t work = prelu_shape(op);
    cpu_prelu_t *prelu;
    err_code_t rc = cpu_combine_open_in(op, sizeof *prelu, true, err);

    if (rc != ERR_OK || !op->config.training)
        return rc;
    prelu = op->state;
    prelu->sums = mem_round(op->scratch_bytes);
    op->scratch_bytes =
        prelu->sums + (size_t)(work.outer * work.slopes) * sizeof(double);
    return ERR_OK;
}

/* ---- a run with one slope ------------------------------------------------ */

SIMD_CLONES
static void run_forward(const float *x, float *y, int64_t n, float a)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : a * x[i];
}

SIMD_CLONES
static void run_backward(const float *x, const float *dy, float *dx, int64_t n,
                         float a)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dy[i] : a * dy[i];
}

/* Return the sum of x dy over the elements where x is not above 0. */
SIMD_CLONES
static float run_sum(const float *x, const float *dy, int64_t n)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += x[i + j] > 0 ? 0 : x[i + j] * dy[i + j];
    for (; i < n; i++)
        sum += x[i] > 0 ? 0 : x[i] * dy[i];
    for (int j = 0; j < SIMD_LANES; j++)
        sum += lanes[j];
    return sum;
}

static void run_body(void *context, int64_t first, int64_t last)
{
    const prelu_work_t *work = context;

    for (int64_t run = first; run < last; run++) {
        const int64_t at = run * work->inner, n = work->inner;
        const float a = work->a[run % work->slopes];
        double sum = 0;

        if (work->dy == NULL) {
            run_forward(work->x + at, work->to + at, n, a);
            continue;
        }
        for (int64_t i = 0; i < n; i += CHUNK)
            sum += (double)run_sum(work->x + at + i, work->dy + at + i,
                                   n - i < CHUNK ? n - i : CHUNK);
        work->sums[run] = sum;
        if (work->to != NULL)
            run_backward(work->x + at, work->dy + at, work->to + at, n, a);
    }
}

/* ---- a row of slopes ----------------------------------------------------- */

SIMD_CLONES
static void row_forward(const float *x, float *y, const float *a, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : a[i] * x[i];
}

SIMD_CLONES
static void row_backward(const float *x, const float *dy, float *dx,
                         const float *a, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dy[i] : a[i] * dy[i];
}

SIMD_CLONES
static void row_sums(const float *x, const float *dy, double *sums, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        sums[i] = x[i] > 0 ? 0 : (double)(x[i] * dy[i]);
}

static void row_body(void *context, int64_t first, int64_t last)
{
    const prelu_work_t *work = context;
    const int64_t n = work->slopes;

    for (int64_t row = first; row < last; row++) {
        const float *x = work->x + row * n;

        if (work->dy == NULL) {
            row_forward(x, work->to + row * n, work->a, n);
            continue;
        }
        row_sums(x, work->dy + row * n, work->sums + row * n, n);
        if (work->to != NULL)
            row_backward(x, work->dy + row * n, work->to + row * n, work->a, n);
    }
}

/* ---- calls --------------------------------------------------------------- */

static void prelu_run(const op_t *op, prelu_work_t *work)
{
    const bool rows = work->inner == 1;
    const int64_t each = rows ? work->slopes : work->inner;

    simd_team_run(
        op->config.threads, rows ? work->outer : work->outer * work->slopes,
        1 + CPU_COMBINE_GRAIN / each, rows ? row_body : run_body, work);
}

static void finish_body(void *context, int64_t first, int64_t last)
{
    const prelu_work_t *work = context;

    for (int64_t s = first; s < last; s++) {
        double sum = 0;

        for (int64_t o = 0; o < work->outer; o++)
            sum += work->sums[o * work->slopes + s];
        work->da[s] = (float)sum;
    }
}

static err_code_t cpu_prelu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    prelu_work_t work = prelu_shape(op);
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.a = args->params[0];
    work.to = args->y;
    prelu_run(op, &work);
    return ERR_OK;
}

static err_code_t cpu_prelu_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_prelu_t *prelu = op->state;
    prelu_work_t work = prelu_shape(op);
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.dy = args->dy;
    work.a = args->params[0];
    work.da = args->dparams[0];
    work.sums = (double *)((char *)args->scratch + prelu->sums);
    work.to = cpu_combine_place(op, args, 0);
    prelu_run(op, &work);
    simd_team_run(op->config.threads, work.slopes,
                  1 + CPU_COMBINE_GRAIN / work.outer, finish_body, &work);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_prelu_kernel = {
    .open = cpu_prelu_open,
    .close = cpu_combine_close,
    .forward = cpu_prelu_forward,
    .backward = cpu_prelu_backward,
};
