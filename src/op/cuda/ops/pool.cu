/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool and avgpool; op/ref/pool.c has the rules. A thread computes one
 * element of y, or of dx: that is the sum over the windows that hold the
 * element of x. The workspace of maxpool keeps for each window the index
 * (int32) of the maximum in its plane.
 */
#include <limits.h>

#include "op/cuda/device/space.cuh"

namespace
{

struct pool_work {
    space_t in, out;
    int kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    bool inside;   /* see op_pool_t */
    int64_t count; /* elements that threads compute */
    const float *x, *dy;
    float *to;        /* y or dx */
    int32_t *winners; /* NULL: not kept */
};

} // namespace

/* The part of window [o] that is in x. */
static __device__ __forceinline__ box_t pool_window(const pool_work &work,
                                                    const int *o)
{
    box_t box;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int first = o[d] * work.stride[d] - work.pad[d];

        box.from[d] = max(first, 0);
        box.to[d] = min(first + work.kernel[d], work.in.size[d]);
    }
    return box;
}

/* The windows that hold element [i] of a plane of x. */
static __device__ __forceinline__ box_t pool_holders(const pool_work &work,
                                                     const int *i)
{
    box_t box;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int last = i[d] + work.pad[d], over = last - work.kernel[d];

        box.from[d] = over < 0 ? 0 : over / work.stride[d] + 1;
        box.to[d] = min(last / work.stride[d] + 1, work.out.size[d]);
    }
    return box;
}

/* The number by which the sum over window [o] is divided. */
static __device__ __forceinline__ float pool_divisor(const pool_work &work,
                                                     const int *o)
{
    int64_t taps = 1;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int first = o[d] * work.stride[d] - work.pad[d];
        const int end = work.in.size[d] + (work.inside ? 0 : work.pad[d]);

        taps *= min(first + work.kernel[d], end) -
                (work.inside ? max(first, 0) : first);
    }
    return (float)taps;
}

/* ---- kernels ------------------------------------------------------------- */

static __global__ void __launch_bounds__(EACH_THREADS) pool_max(pool_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t o = space_place(work.out, i);
        const box_t box = pool_window(work, o.at);
        const float *x = work.x + o.plane * work.in.count;
        int64_t winner = -1;
        float best = 0;
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        {
            const int64_t k = space_index(work.in, at);
            const float value = x[k];

            if (winner < 0 || (best == best && !(value <= best))) {
                winner = k;
                best = value;
            }
        }
        work.to[i] = best;
        if (work.winners != NULL)
            work.winners[i] = (int32_t)winner;
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    pool_max_gradient(pool_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const int64_t own = space_index(work.in, p.at);
        const int64_t first = p.plane * work.out.count;
        const box_t box = pool_holders(work, p.at);
        float sum = 0;
        int o[OP_SPACE_MAX];

        BOX_EACH(box, o)
        {
            const int64_t k = first + space_index(work.out, o);

            if (work.winners[k] == own)
                sum += work.dy[k];
        }
        work.to[i] = sum;
    }
}

static __global__ void __launch_bounds__(EACH_THREADS) pool_mean(pool_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t o = space_place(work.out, i);
        const box_t box = pool_window(work, o.at);
        const float *x = work.x + o.plane * work.in.count;
        float sum = 0;
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        sum += x[space_index(work.in, at)];
        work.to[i] = sum / pool_divisor(work, o.at);
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    pool_mean_gradient(pool_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const float *dy = work.dy + p.plane * work.out.count;
        const box_t box = pool_holders(work, p.at);
        float sum = 0;
        int o[OP_SPACE_MAX];

        BOX_EACH(box, o)
        sum += dy[space_index(work.out, o)] / pool_divisor(work, o);
        work.to[i] = sum;
    }
}

/* ---- the op -------------------------------------------------------------- */

static err_code_t pool_open(op_t *op, err_t *err)
{
    const int64_t plane = op_desc_space(&op->config.in);

    op->reads_x = false;
    if (plane > INT_MAX)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the op backend \"cuda\" takes planes of up to 2^31 "
                       "elements, but this one has %lld",
                       op_kind_name(op->config.kind), (long long)plane);
    if (op->config.training && op->config.kind == OP_MAXPOOL2D)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int32_t);
    return ERR_OK;
}

static pool_work work_of(const op_t *op, const op_args_t *args)
{
    const op_pool_t *pool = &op->config.pool;
    const int dims = op->config.in.ndim - 2;
    pool_work work = {};

    work.in = space_of(&op->config.in);
    work.out = space_of(&op->out);
    space_three(pool->kernel, dims, 1, work.kernel);
    space_three(pool->stride, dims, 1, work.stride);
    space_three(pool->pad, dims, 0, work.pad);
    work.inside = pool->inside;
    work.x = (const float *)args->x;
    work.dy = (const float *)args->dy;
    work.winners = op->config.training ? (int32_t *)args->workspace : NULL;
    return work;
}

static err_code_t pool_forward(op_t *op, const op_args_t *args, err_t *err)
{
    pool_work work = work_of(op, args);
    unsigned blocks;

    work.count = op_desc_elems(&op->out);
    work.to = (float *)args->y;
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_MAXPOOL2D)
        LAUNCH(pool_max, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    else
        LAUNCH(pool_mean, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t pool_backward(op_t *op, const op_args_t *args, err_t *err)
{
    pool_work work = work_of(op, args);
    unsigned blocks;

    if (!op->config.need_dx)
        return ERR_OK;
    work.count = op_desc_elems(&op->config.in);
    work.to = (float *)args->dx;
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_MAXPOOL2D)
        LAUNCH(pool_max_gradient, blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    else
        LAUNCH(pool_mean_gradient, blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_pool_kernel = {pool_open, NULL, pool_forward,
                                                 pool_backward};
