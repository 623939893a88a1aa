/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * adaptive_avgpool and adaptive_maxpool; op/ref/adaptive.c has the rules. A
 * thread computes one element of y, or of dx: that is the sum over the windows
 * that hold the element of x. The workspace of the maximum keeps its index
 * (int32) in its plane.
 */
#include <limits.h>

#include "op/cuda/device/space.cuh"

namespace
{

struct adaptive_work {
    space_t in, out;
    int64_t count; /* elements that threads compute */
    const float *x, *dy;
    float *to;        /* y or dx */
    int32_t *winners; /* NULL: not kept */
};

} // namespace

/* Window [o] of x. */
static __device__ __forceinline__ box_t adaptive_window(const adaptive_work &w,
                                                        const int *o)
{
    box_t box;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int64_t first = (int64_t)o[d] * w.in.size[d];
        const int64_t end = first + w.in.size[d];

        box.from[d] = (int)index_div(first, w.out.by[d]);
        box.to[d] = (int)index_div(end + w.out.size[d] - 1, w.out.by[d]);
    }
    return box;
}

/* The windows that hold element [i] of a plane of x. */
static __device__ __forceinline__ box_t adaptive_holders(const adaptive_work &w,
                                                         const int *i)
{
    box_t box;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int64_t first = (int64_t)i[d] * w.out.size[d];
        const int64_t end = first + w.out.size[d];

        box.from[d] = (int)index_div(first, w.in.by[d]);
        box.to[d] = (int)index_div(end + w.in.size[d] - 1, w.in.by[d]);
    }
    return box;
}

static __device__ __forceinline__ double box_count(const box_t &box)
{
    double count = 1;

    for (int d = 0; d < OP_SPACE_MAX; d++)
        count *= box.to[d] - box.from[d];
    return count;
}

/* ---- kernels ------------------------------------------------------------- */

static __global__ void __launch_bounds__(EACH_THREADS)
    adaptive_mean(adaptive_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t o = space_place(work.out, i);
        const box_t box = adaptive_window(work, o.at);
        const float *x = work.x + o.plane * work.in.count;
        double sum = 0;
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        sum += x[space_index(work.in, at)];
        work.to[i] = (float)(sum / box_count(box));
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    adaptive_mean_gradient(adaptive_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const float *dy = work.dy + p.plane * work.out.count;
        const box_t box = adaptive_holders(work, p.at);
        double sum = 0;
        int o[OP_SPACE_MAX];

        BOX_EACH(box, o)
        sum +=
            dy[space_index(work.out, o)] / box_count(adaptive_window(work, o));
        work.to[i] = (float)sum;
    }
}

static __global__ void __launch_bounds__(EACH_THREADS, EACH_FEW)
    adaptive_max(adaptive_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t o = space_place(work.out, i);
        const box_t box = adaptive_window(work, o.at);
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
    adaptive_max_gradient(adaptive_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const int64_t own = space_index(work.in, p.at);
        const int64_t first = p.plane * work.out.count;
        const box_t box = adaptive_holders(work, p.at);
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

/* ---- the op -------------------------------------------------------------- */

static err_code_t adaptive_open(op_t *op, err_t *err)
{
    const int64_t plane = op_desc_space(&op->config.in);

    op->reads_x = false;
    if (plane > INT_MAX)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the op backend \"cuda\" takes planes of up to 2^31 "
                       "elements, but this one has %lld",
                       op_kind_name(op->config.kind), (long long)plane);
    if (op->config.training && op->config.kind == OP_ADAPTIVE_MAXPOOL)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int32_t);
    return ERR_OK;
}

static adaptive_work work_of(const op_t *op, const op_args_t *args, void *to)
{
    return adaptive_work{space_of(&op->config.in),
                         space_of(&op->out),
                         0,
                         (const float *)args->x,
                         (const float *)args->dy,
                         (float *)to,
                         op->config.training ? (int32_t *)args->workspace
                                             : NULL};
}

static err_code_t adaptive_forward(op_t *op, const op_args_t *args, err_t *err)
{
    adaptive_work work = work_of(op, args, args->y);
    unsigned blocks;

    work.count = op_desc_elems(&op->out);
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_ADAPTIVE_MAXPOOL)
        LAUNCH(adaptive_max, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    else
        LAUNCH(adaptive_mean, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t adaptive_backward(op_t *op, const op_args_t *args, err_t *err)
{
    adaptive_work work = work_of(op, args, args->dx);
    unsigned blocks;

    if (!op->config.need_dx)
        return ERR_OK;
    work.count = op_desc_elems(&op->config.in);
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_ADAPTIVE_MAXPOOL)
        LAUNCH(adaptive_max_gradient, blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    else
        LAUNCH(adaptive_mean_gradient, blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_adaptive_kernel = {
    adaptive_open, NULL, adaptive_forward, adaptive_backward};
