/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * add and mul with broadcasting (op_broadcast_t). The gradient of an input's
 * element is the sum over all elements of y that were computed from it: a
 * thread adds them, or a warp or a block if there are many. Loops over the
 * dimensions have a constant length, so that indices stay in registers.
 */
#include "op/cuda/device/rows.cuh"

extern "C" {
#include "op/op_broadcast.h"
}

namespace
{

struct broadcast_work {
    op_broadcast_t b;
    index_divisor_t by[OP_DIMS_MAX]; /* the dimensions */
    int inputs;
    bool product;  /* mul; otherwise add */
    int64_t count; /* elements of y */
    const float *in[OP_INPUTS_MAX];
    float *y;
};

/* The gradient of input [input]. Its dimensions are those of y in which it is
 * not repeated; [rows] is their product, [length] that of the other ones. */
struct gradient_work {
    broadcast_work w;
    int input;
    int64_t rows, length;
    const float *dy;
    float *dx;
};

} // namespace

/* The element of y that is computed from the indices [at]. */
static __device__ __forceinline__ float
value_at(const broadcast_work &w, const int64_t *at, int skip, float first)
{
    float value = first;

    for (int k = 0; k < w.inputs; k++) {
        int64_t from = 0;

        if (k == skip)
            continue;
        for (int d = 0; d < OP_DIMS_MAX; d++)
            if (d < w.b.ndim)
                from += at[d] * w.b.stride[k][d];
        value = w.product ? value * w.in[k][from] : value + w.in[k][from];
    }
    return value;
}

static __global__ void __launch_bounds__(EACH_THREADS)
    broadcast_value(broadcast_work w)
{
    for (int64_t i = each_first(); i < w.count; i += each_step()) {
        int64_t at[OP_DIMS_MAX], left = i;

        for (int d = OP_DIMS_MAX - 1; d >= 0; d--)
            if (d < w.b.ndim)
                at[d] = index_split(&left, w.by[d]);
        w.y[i] = value_at(w, at, -1, w.product ? 1.0f : -0.0f);
    }
}

/* Write the indices of element [k] of y's dimensions in which the input is
 * repeated ([repeated]), or of the other ones, to [at]. */
static __device__ __forceinline__ void
indices_at(const gradient_work &g, bool repeated, int64_t k, int64_t *at)
{
    for (int d = OP_DIMS_MAX - 1; d >= 0; d--)
        if (d < g.w.b.ndim && (g.w.b.stride[g.input][d] == 0) == repeated)
            at[d] = index_split(&k, g.w.by[d]);
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS)
    broadcast_gradient(gradient_work g)
{
    const rows_place<who> place;
    const op_broadcast_t &b = g.w.b;

    for (int64_t row = place.row; row < g.rows; row += place.step) {
        int64_t at[OP_DIMS_MAX];
        double sum = 0;

        indices_at(g, false, row, at);
        for (int64_t k = place.lane; k < g.length; k += place.lanes) {
            int64_t i = 0, step = 1;
            float dy;

            indices_at(g, true, k, at);
            for (int d = OP_DIMS_MAX - 1; d >= 0; d--) {
                if (d >= b.ndim)
                    continue;
                i += at[d] * step;
                step *= b.dims[d];
            }
            dy = g.dy[i];
            sum += g.w.product ? value_at(g.w, at, g.input, dy) : dy;
        }
        sum = rows_sum<who>(sum);
        if (place.lane == 0)
            g.dx[row] = (float)sum;
    }
}

/* ---- the op -------------------------------------------------------------- */

static err_code_t broadcast_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = op->config.kind == OP_MUL_BROADCAST;
    return ERR_OK;
}

static broadcast_work work_of(const op_t *op, const op_args_t *args)
{
    broadcast_work w = {};

    w.b = op_broadcast_of(&op->config);
    for (int d = 0; d < w.b.ndim; d++)
        w.by[d] = index_divisor_of(w.b.dims[d]);
    w.inputs = 1 + op->config.others;
    w.product = op->config.kind == OP_MUL_BROADCAST;
    w.count = op_desc_elems(&op->out);
    w.in[0] = (const float *)args->x;
    for (int k = 1; k < w.inputs; k++)
        w.in[k] = (const float *)args->other[k - 1];
    w.y = (float *)args->y;
    return w;
}

static err_code_t broadcast_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const broadcast_work w = work_of(op, args);

    LAUNCH(broadcast_value, each_blocks(w.count, EACH_THREADS), EACH_THREADS, 0,
           cuda_stream(args), w);
    return cuda_started(op, err);
}

static void gradient_start(const broadcast_work &w, int input, const float *dy,
                           float *dx, cudaStream_t stream)
{
    gradient_work g = {w, input, 1, 1, dy, dx};
    rows_who_t who;

    for (int d = 0; d < w.b.ndim; d++)
        *(w.b.stride[input][d] == 0 ? &g.length : &g.rows) *= w.b.dims[d];
    who = rows_for(g.length, 1);
    ROWS_LAUNCH(who, broadcast_gradient, rows_blocks(who, g.rows), stream, g);
}

static err_code_t broadcast_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const broadcast_work w = work_of(op, args);
    const float *dy = (const float *)args->dy;

    if (op->config.need_dx)
        gradient_start(w, 0, dy, (float *)args->dx, cuda_stream(args));
    for (int k = 1; k < w.inputs; k++)
        if (args->dother[k - 1] != NULL)
            gradient_start(w, k, dy, (float *)args->dother[k - 1],
                           cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_broadcast_kernel = {
    broadcast_open, NULL, broadcast_forward, broadcast_backward};
