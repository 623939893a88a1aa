/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add and mul of plain inputs that are repeated along dimensions
 * (op_spread_t). Forward goes row by row of y. Backward goes through the
 * elements of an input: the gradient of each is the sum over all elements of y
 * that used it. The order of the sum is fixed, so no bit depends on the number
 * of threads. The sum is in double; where one element was used for a whole
 * row, at most CHUNK elements of the row are summed in float first, in
 * SIMD_LANES partial sums.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_spread.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define CHUNK 1024

typedef struct spread_work {
    op_spread_t spread;
    int inputs;
    bool product;
    const float *in[OP_INPUTS_MAX];
    const float *dy; /* NULL in forward */
    float *to;
    int input; /* backward: number of the input whose gradient is computed */
} spread_work_t;

static err_code_t cpu_spread_open(op_t *op, err_t *err)
{
    op->reads_x = op->config.kind == OP_MUL_SPREAD;
    return cpu_combine_open(op, true, err);
}

/* ---- rows ---------------------------------------------------------------- */

SIMD_CLONES
static void row_add(const float *a, const float *b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

SIMD_CLONES
static void row_add_one(const float *a, float b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b;
}

SIMD_CLONES
static void row_mul(const float *a, const float *b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

SIMD_CLONES
static void row_mul_one(const float *a, float b, float *y, int64_t n)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b;
}

/* y = y + b or y = y b, where b is a row (stride 1) or one number (stride 0).
 */
static void row_take(const spread_work_t *work, float *y, const float *b,
                     int64_t stride, int64_t n)
{
    if (work->product && stride == 1)
        row_mul(y, b, y, n);
    else if (work->product)
        row_mul_one(y, *b, y, n);
    else if (stride == 1)
        row_add(y, b, y, n);
    else
        row_add_one(y, *b, y, n);
}

static void row_begin(float *y, const float *a, int64_t stride, int64_t n)
{
    if (stride == 1)
        memcpy(y, a, (size_t)n * sizeof *y);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = *a;
}

/* Offset in input [k] of the elements for row [row] of y. */
static int64_t row_at(const op_spread_t *spread, int k, int64_t row)
{
    int64_t at = 0;

    for (int d = spread->ndim - 2; d >= 0; d--) {
        at += row % spread->dims[d] * spread->stride[k][d];
        row /= spread->dims[d];
    }
    return at;
}

static void forward_body(void *context, int64_t first, int64_t last)
{
    const spread_work_t *work = context;
    const op_spread_t *spread = &work->spread;
    const int column = spread->ndim - 1;
    const int64_t n = spread->dims[column];

    for (int64_t row = first; row < last; row++) {
        float *y = work->to + row * n;

        row_begin(y, work->in[0] + row_at(spread, 0, row),
                  spread->stride[0][column], n);
        for (int k = 1; k < work->inputs; k++)
            row_take(work, y, work->in[k] + row_at(spread, k, row),
                     spread->stride[k][column], n);
    }
}

/* ---- gradients ----------------------------------------------------------- */

/* kept: number of rows of y with different elements of the input; repeats:
 * number of rows of y that use the same elements of the input. */
typedef struct spread_rows {
    int64_t kept, repeats;
} spread_rows_t;

static spread_rows_t rows_of(const spread_work_t *work)
{
    const op_spread_t *spread = &work->spread;
    spread_rows_t rows = {1, 1};

    for (int d = 0; d < spread->ndim - 1; d++) {
        if (spread->stride[work->input][d] != 0)
            rows.kept *= spread->dims[d];
        else
            rows.repeats *= spread->dims[d];
    }
    return rows;
}

/* Row of y that is repeat number [repeat] of kept row [kept]. */
static int64_t row_of(const spread_work_t *work, int64_t kept, int64_t repeat)
{
    const op_spread_t *spread = &work->spread;
    int64_t row = 0, step = 1;

    for (int d = spread->ndim - 2; d >= 0; d--) {
        int64_t *number = spread->stride[work->input][d] != 0 ? &kept : &repeat;

        row += *number % spread->dims[d] * step;
        *number /= spread->dims[d];
        step *= spread->dims[d];
    }
    return row;
}

/* What [n] elements of row [row] of y, from [begin] on, contribute to the
 * gradient: dy, multiplied by the other inputs if the op is mul. Returns a
 * pointer into dy, or [buffer]. */
static const float *row_slope(const spread_work_t *work, int64_t row,
                              int64_t begin, int64_t n, float *buffer)
{
    const op_spread_t *spread = &work->spread;
    const int column = spread->ndim - 1;
    const float *dy = work->dy + row * spread->dims[column] + begin;

    if (!work->product)
        return dy;
    memcpy(buffer, dy, (size_t)n * sizeof *buffer);
    for (int k = 0; k < work->inputs; k++)
        if (k != work->input)
            row_take(work, buffer,
                     work->in[k] + row_at(spread, k, row) +
                         begin * spread->stride[k][column],
                     spread->stride[k][column], n);
    return buffer;
}

SIMD_CLONES
static double row_sum(const float *x, int64_t n)
{
    float lanes[SIMD_LANES] = {0}, rest = 0;
    double sum = 0;
    int64_t i = 0;

    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        for (int j = 0; j < SIMD_LANES; j++)
            lanes[j] += x[i + j];
    for (; i < n; i++)
        rest += x[i];
    for (int j = 0; j < SIMD_LANES; j++)
        sum += (double)lanes[j];
    return sum + (double)rest;
}

SIMD_CLONES
static void sums_add(const float *x, double *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)x[i];
}

/* Gradient of an input that has one element per kept row. */
static void gradient_number(const spread_work_t *work, int64_t kept,
                            int64_t repeats)
{
    const int64_t count = work->spread.dims[work->spread.ndim - 1];
    float buffer[CHUNK];
    double sum = 0;

    for (int64_t r = 0; r < repeats; r++) {
        const int64_t row = row_of(work, kept, r);

        for (int64_t begin = 0; begin < count; begin += CHUNK) {
            const int64_t left = count - begin, n = left < CHUNK ? left : CHUNK;

            sum += row_sum(row_slope(work, row, begin, n, buffer), n);
        }
    }
    work->to[kept] = (float)sum;
}

/* Gradient of an input that has a row of elements per kept row. */
static void gradient_row(const spread_work_t *work, int64_t kept,
                         int64_t repeats)
{
    const int64_t count = work->spread.dims[work->spread.ndim - 1];
    double sums[CHUNK];
    float buffer[CHUNK];

    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        const int64_t left = count - begin, n = left < CHUNK ? left : CHUNK;
        float *to = work->to + kept * count + begin;

        if (repeats == 1) {
            const float *slope =
                row_slope(work, row_of(work, kept, 0), begin, n, buffer);

            memcpy(to, slope, (size_t)n * sizeof *to);
            continue;
        }
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (int64_t r = 0; r < repeats; r++)
            sums_add(row_slope(work, row_of(work, kept, r), begin, n, buffer),
                     sums, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)sums[i];
    }
}

static void backward_body(void *context, int64_t first, int64_t last)
{
    const spread_work_t *work = context;
    const int64_t repeats = rows_of(work).repeats;
    const bool number =
        work->spread.stride[work->input][work->spread.ndim - 1] == 0;

    for (int64_t kept = first; kept < last; kept++)
        (number ? gradient_number : gradient_row)(work, kept, repeats);
}

/* ---- calls --------------------------------------------------------------- */

static spread_work_t work_of(const op_t *op)
{
    return (spread_work_t){.spread = op_spread_of(&op->config),
                           .inputs = op->config.others + 1,
                           .product = op->config.kind == OP_MUL_SPREAD};
}

static err_code_t cpu_spread_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    spread_work_t work = work_of(op);
    const int64_t n = work.spread.dims[work.spread.ndim - 1];
    err_code_t rc = cpu_combine_read(op, args, work.in, err);

    if (rc != ERR_OK)
        return rc;
    work.to = args->y;
    simd_team_run(op->config.threads, op_desc_elems(&op->out) / n,
                  1 + CPU_COMBINE_GRAIN / n, forward_body, &work);
    return ERR_OK;
}

static err_code_t cpu_spread_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    spread_work_t work = work_of(op);
    err_code_t rc = ERR_OK;

    if (work.product)
        rc = cpu_combine_read(op, args, work.in, err);
    work.dy = args->dy;
    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++) {
        int64_t kept;

        work.to = cpu_combine_place(op, args, k);
        if (work.to == NULL)
            continue;
        work.input = k;
        kept = rows_of(&work).kept;
        simd_team_run(op->config.threads, kept,
                      1 + CPU_COMBINE_GRAIN / (op_desc_elems(&op->out) / kept),
                      backward_body, &work);
        rc = cpu_combine_flush(op, args, k, err);
    }
    return rc;
}

const op_kernel_t cpu_spread_kernel = {
    .open = cpu_spread_open,
    .close = cpu_combine_close,
    .forward = cpu_spread_forward,
    .backward = cpu_spread_backward,
};
