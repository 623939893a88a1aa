/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add and mul of plain inputs that are repeated along dimensions
 * (op_broadcast_t). Forward goes row by row of y. Backward goes through the
 * elements of an input: the gradient of each is the sum over all elements of y
 * that used it. The order of the sum is fixed, so no bit depends on the number
 * of threads. The sum is in double; where one element was used for a whole
 * row, at most CHUNK elements of the row are summed in float first, in
 * SIMD_LANES partial sums.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_broadcast.h"
#include "op/op_desc.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define CHUNK 1024

typedef struct broadcast_work {
    op_broadcast_t broadcast;
    int inputs;
    bool product;
    const float *in[OP_INPUTS_MAX];
    const float *dy; /* NULL in forward */
    float *to;
    int input; /* backward: number of the input whose gradient is computed */
} broadcast_work_t;

static err_code_t cpu_broadcast_open(op_t *op, err_t *err)
{
    op->reads_x = op->config.kind == OP_MUL_BROADCAST;
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
static void row_take(const broadcast_work_t *work, float *y, const float *b,
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
static int64_t row_at(const op_broadcast_t *broadcast, int k, int64_t row)
{
    int64_t at = 0;

    for (int d = broadcast->ndim - 2; d >= 0; d--) {
        at += row % broadcast->dims[d] * broadcast->stride[k][d];
        row /= broadcast->dims[d];
    }
    return at;
}

static void forward_body(void *context, int64_t first, int64_t last)
{
    const broadcast_work_t *work = context;
    const op_broadcast_t *broadcast = &work->broadcast;
    const int column = broadcast->ndim - 1;
    const int64_t n = broadcast->dims[column];

    for (int64_t row = first; row < last; row++) {
        float *y = work->to + row * n;

        row_begin(y, work->in[0] + row_at(broadcast, 0, row),
                  broadcast->stride[0][column], n);
        for (int k = 1; k < work->inputs; k++)
            row_take(work, y, work->in[k] + row_at(broadcast, k, row),
                     broadcast->stride[k][column], n);
    }
}

/* ---- gradients ----------------------------------------------------------- */

/* kept: number of rows of y with different elements of the input; repeats:
 * number of rows of y that use the same elements of the input. */
typedef struct broadcast_rows {
    int64_t kept, repeats;
} broadcast_rows_t;

static broadcast_rows_t rows_of(const broadcast_work_t *work)
{
    const op_broadcast_t *broadcast = &work->broadcast;
    broadcast_rows_t rows = {1, 1};

    for (int d = 0; d < broadcast->ndim - 1; d++) {
        if (broadcast->stride[work->input][d] != 0)
            rows.kept *= broadcast->dims[d];
        else
            rows.repeats *= broadcast->dims[d];
    }
    return rows;
}

/* Row of y that is repeat number [repeat] of kept row [kept]. */
static int64_t row_of(const broadcast_work_t *work, int64_t kept,
                      int64_t repeat)
{
    const op_broadcast_t *broadcast = &work->broadcast;
    int64_t row = 0, step = 1;

    for (int d = broadcast->ndim - 2; d >= 0; d--) {
        int64_t *number =
            broadcast->stride[work->input][d] != 0 ? &kept : &repeat;

        row += *number % broadcast->dims[d] * step;
        *number /= broadcast->dims[d];
        step *= broadcast->dims[d];
    }
    return row;
}

/* What [n] elements of row [row] of y, from [begin] on, contribute to the
 * gradient: dy, multiplied by the other inputs if the op is mul. Returns a
 * pointer into dy, or [buffer]. */
static const float *row_slope(const broadcast_work_t *work, int64_t row,
                              int64_t begin, int64_t n, float *buffer)
{
    const op_broadcast_t *broadcast = &work->broadcast;
    const int column = broadcast->ndim - 1;
    const float *dy = work->dy + row * broadcast->dims[column] + begin;

    if (!work->product)
        return dy;
    memcpy(buffer, dy, (size_t)n * sizeof *buffer);
    for (int k = 0; k < work->inputs; k++)
        if (k != work->input)
            row_take(work, buffer,
                     work->in[k] + row_at(broadcast, k, row) +
                         begin * broadcast->stride[k][column],
                     broadcast->stride[k][column], n);
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
static void gradient_number(const broadcast_work_t *work, int64_t kept,
                            int64_t repeats)
{
    const int64_t count = work->broadcast.dims[work->broadcast.ndim - 1];
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
static void gradient_row(const broadcast_work_t *work, int64_t kept,
                         int64_t repeats)
{
    const int64_t count = work->broadcast.dims[work->broadcast.ndim - 1];
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
    const broadcast_work_t *work = context;
    const int64_t repeats = rows_of(work).repeats;
    const bool number =
        work->broadcast.stride[work->input][work->broadcast.ndim - 1] == 0;

    for (int64_t kept = first; kept < last; kept++)
        (number ? gradient_number : gradient_row)(work, kept, repeats);
}

/* ---- calls --------------------------------------------------------------- */

static broadcast_work_t work_of(const op_t *op)
{
    return (broadcast_work_t){.broadcast = op_broadcast_of(&op->config),
                              .inputs = op->config.others + 1,
                              .product = op->config.kind == OP_MUL_BROADCAST};
}

static err_code_t cpu_broadcast_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    broadcast_work_t work = work_of(op);
    const int64_t n = work.broadcast.dims[work.broadcast.ndim - 1];
    err_code_t rc = cpu_combine_read(op, args, work.in, err);

    if (rc != ERR_OK)
        return rc;
    work.to = args->y;
    simd_team_run(op->config.threads, op_desc_elems(&op->out) / n,
                  1 + CPU_COMBINE_GRAIN / n, forward_body, &work);
    return ERR_OK;
}

static err_code_t cpu_broadcast_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    broadcast_work_t work = work_of(op);
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

const op_kernel_t cpu_broadcast_kernel = {
    .open = cpu_broadcast_open,
    .close = cpu_combine_close,
    .forward = cpu_broadcast_forward,
    .backward = cpu_broadcast_backward,
};
