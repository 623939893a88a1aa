/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * softmax and log_softmax of a plain x, seen as [outer, count, inner]. With
 * inner = 1 a row is contiguous and is computed alone; otherwise BLOCK
 * adjacent columns are computed together. The sum of a row has a fixed order,
 * with any number of threads.
 */
#include "op/cpu/ops/softmax.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_geometry.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Columns that are computed together, and minimum elements per thread. */
#define BLOCK 64
#define GRAIN 4096

typedef struct softmax_work {
    op_reduce_t r;
    bool logs;      /* log_softmax */
    const float *x; /* forward: x; backward: y */
    const float *dy;
    float *to;
} softmax_work_t;

static err_code_t cpu_softmax_open(op_t *op, err_t *err)
{
    err_code_t rc = cpu_combine_open_over(op, err);

    op->reads_y = rc == ERR_OK;
    return rc;
}

/* exp(x), but 0 where x is so small that simd_math_exp is no longer accurate.
 */
SIMD_INLINE float softmax_exp(float x)
{
    const float power = simd_math_exp(x);

    return x < -87.0f ? 0 : power;
}

/* ---- a contiguous row ---------------------------------------------------- */

SIMD_INLINE float lanes_sum(const float *lanes)
{
    float sum = 0;

    for (int j = 0; j < SIMD_LANES; j++)
        sum += lanes[j];
    return sum;
}

/* y = exp(x - top), unless y is NULL. Returns the sum of the exponentials. */
SIMD_CLONES
static float row_powers(const float *x, float *y, int64_t count, float top)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + SIMD_LANES <= count; k += SIMD_LANES) {
        float powers[SIMD_LANES];

        for (int j = 0; j < SIMD_LANES; j++)
            powers[j] = softmax_exp(x[k + j] - top);
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += powers[j];
        for (int j = 0; y != NULL && j < SIMD_LANES; j++)
            y[k + j] = powers[j];
    }
    for (; k < count; k++) {
        const float power = softmax_exp(x[k] - top);

        sum += power;
        if (y != NULL)
            y[k] = power;
    }
    return sum + lanes_sum(lanes);
}

/* y = (x - shift) factor */
SIMD_CLONES
static void row_shift(const float *x, float *y, int64_t count, float shift,
                      float factor)
{
    SIMD_INDEPENDENT
    for (int64_t k = 0; k < count; k++)
        y[k] = (x[k] - shift) * factor;
}

/* Return the sum of y dy, or of dy if y is NULL. */
SIMD_CLONES
static float row_product(const float *y, const float *dy, int64_t count)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + SIMD_LANES <= count; k += SIMD_LANES)
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += y == NULL ? dy[k + j] : y[k + j] * dy[k + j];
    for (; k < count; k++)
        sum += y == NULL ? dy[k] : y[k] * dy[k];
    return sum + lanes_sum(lanes);
}

SIMD_CLONES
static void row_gradient(const float *y, const float *dy, float *dx,
                         int64_t count, float sum)
{
    SIMD_INDEPENDENT
    for (int64_t k = 0; k < count; k++)
        dx[k] = y[k] * (dy[k] - sum);
}

SIMD_CLONES
static void row_gradient_logs(const float *y, const float *dy, float *dx,
                              int64_t count, float sum)
{
    SIMD_INDEPENDENT
    for (int64_t k = 0; k < count; k++)
        dx[k] = dy[k] - softmax_exp(y[k]) * sum;
}

static void row_forward(const softmax_work_t *work, int64_t at)
{
    const int64_t count = work->r.count;
    const float *x = work->x + at;
    float *y = work->to + at;
    const float top = cpu_softmax_top(x, count);
    const float sum = row_powers(x, work->logs ? NULL : y, count, top);

    if (!work->logs) {
        row_shift(y, y, count, 0, 1 / sum);
        return;
    }
    /* Two steps: top may be so much larger than logf(sum) that their sum would
     * lose digits. */
    row_shift(x, y, count, top, 1);
    row_shift(y, y, count, logf(sum), 1);
}

static void row_backward(const softmax_work_t *work, int64_t at)
{
    const int64_t count = work->r.count;
    const float *y = work->x + at, *dy = work->dy + at;
    const float sum = row_product(work->logs ? NULL : y, dy, count);

    (work->logs ? row_gradient_logs : row_gradient)(y, dy, work->to + at, count,
                                                    sum);
}

/* ---- adjacent columns ---------------------------------------------------- */

/* For [n] columns from offset [at] on: maximum, sum of exp(x - top), and y =
 * exp(x - top), or x - top if log_softmax is computed. */
SIMD_CLONES
static void block_powers(const softmax_work_t *work, int64_t at, int64_t n,
                         float *top, float *sum)
{
    const int64_t inner = work->r.inner;
    const float *x = work->x + at;
    float *y = work->to + at;

    for (int64_t i = 0; i < n; i++) {
        top[i] = x[i];
        sum[i] = 0;
    }
    for (int64_t k = 1; k < work->r.count; k++)
        for (int64_t i = 0; i < n; i++) {
            const float value = x[k * inner + i];

            top[i] = value > top[i] ? value : top[i];
        }
    for (int64_t k = 0; k < work->r.count; k++) {
        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            const float d = x[k * inner + i] - top[i];
            const float power = softmax_exp(d);

            sum[i] += power;
            y[k * inner + i] = work->logs ? d : power;
        }
    }
}

SIMD_CLONES
static void block_scale(const softmax_work_t *work, float *y, int64_t n,
                        const float *shift, const float *factor)
{
    for (int64_t k = 0; k < work->r.count; k++) {
        float *row = y + k * work->r.inner;

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            row[i] = (row[i] - shift[i]) * factor[i];
    }
}

static void block_forward(const softmax_work_t *work, int64_t at, int64_t n)
{
    float top[BLOCK] = {0}, sum[BLOCK], shift[BLOCK] = {0}, factor[BLOCK] = {0};

    block_powers(work, at, n, top, sum);
    for (int64_t i = 0; i < n; i++) {
        shift[i] = work->logs ? logf(sum[i]) : 0;
        factor[i] = work->logs ? 1 : 1 / sum[i];
    }
    block_scale(work, work->to + at, n, shift, factor);
}

SIMD_CLONES
static void block_backward(const softmax_work_t *work, int64_t at, int64_t n)
{
    const float *y = work->x + at, *dy = work->dy + at;
    const int64_t inner = work->r.inner;
    float *dx = work->to + at, sum[BLOCK] = {0};

    for (int64_t k = 0; k < work->r.count; k++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += dy[k * inner + i] * (work->logs ? 1 : y[k * inner + i]);
    for (int64_t k = 0; k < work->r.count; k++) {
        const int64_t row = k * inner;

        SIMD_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            const float logs = dy[row + i] - softmax_exp(y[row + i]) * sum[i];
            const float shares = y[row + i] * (dy[row + i] - sum[i]);

            dx[row + i] = work->logs ? logs : shares;
        }
    }
}

/* ---- calls --------------------------------------------------------------- */

/* Number of blocks for the columns of one outer index: 1 if the rows are
 * contiguous (inner is 1). */
static int64_t blocks_each(const op_reduce_t *r)
{
    return (r->inner + BLOCK - 1) / BLOCK;
}

static void softmax_body(void *context, int64_t first, int64_t last)
{
    const softmax_work_t *work = context;
    const op_reduce_t *r = &work->r;
    const int64_t each = blocks_each(r);

    for (int64_t item = first; item < last; item++) {
        const int64_t begin = item % each * BLOCK, left = r->inner - begin;
        const int64_t at = item / each * r->count * r->inner + begin;

        if (r->inner > 1)
            (work->dy == NULL ? block_forward : block_backward)(
                work, at, left < BLOCK ? left : BLOCK);
        else
            (work->dy == NULL ? row_forward : row_backward)(work, at);
    }
}

static void softmax_run(const op_t *op, softmax_work_t *work)
{
    work->r = op_reduce_of(&op->config);
    work->logs = op->config.kind == OP_LOG_SOFTMAX;
    simd_team_run(op->config.threads, work->r.outer * blocks_each(&work->r),
                  1 + GRAIN / work->r.count /
                          (work->r.inner < BLOCK ? work->r.inner : BLOCK),
                  softmax_body, work);
}

static err_code_t cpu_softmax_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    softmax_work_t work = {.to = args->y};
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    softmax_run(op, &work);
    return ERR_OK;
}

static err_code_t cpu_softmax_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    softmax_work_t work = {.x = args->y, .dy = args->dy};

    if (!op->config.need_dx)
        return ERR_OK;
    work.to = cpu_combine_place(op, args, 0);
    softmax_run(op, &work);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_softmax_kernel = {
    .open = cpu_softmax_open,
    .close = cpu_combine_close,
    .forward = cpu_softmax_forward,
    .backward = cpu_softmax_backward,
};
