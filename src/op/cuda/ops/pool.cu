/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool and avgpool; op/ref/pool.c has the rules. A thread computes one item
 * of y, or of dx (space.cuh): that is the sum over the windows that hold the
 * element of x. The workspace of maxpool keeps for each element of y the number
 * of the tap with the maximum: uint8, or int32 if a window has more than 256
 * taps.
 */
#include "op/cuda/channels.h"
#include "op/cuda/device/space.cuh"

#define NARROW_TAPS 256

namespace
{

/* Tensors of T; numbers of taps are W. */
template <typename T, typename W> struct pool_work {
    space_t in, out;
    index_divisor_t packs; /* see space.cuh */
    int kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    bool inside;   /* see op_pool_t */
    int64_t items; /* that threads compute */
    const T *x, *dy;
    T *to;   /* y or dx */
    W *taps; /* NULL: not kept */
};

} // namespace

/* The part of window [o] that is in x. */
template <typename Work>
static __device__ __forceinline__ box_t pool_window(const Work &work,
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

/* The windows that hold position [i] of x. */
template <typename Work>
static __device__ __forceinline__ box_t pool_holders(const Work &work,
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

/* The number of the tap with which window [o] holds position [i] of x. */
template <typename Work>
static __device__ __forceinline__ int pool_tap(const Work &work, const int *o,
                                               const int *i)
{
    int tap = 0;

    for (int d = 0; d < OP_SPACE_MAX; d++)
        tap =
            tap * work.kernel[d] + i[d] - (o[d] * work.stride[d] - work.pad[d]);
    return tap;
}

/* The number by which the sum over window [o] is divided. */
template <typename Work>
static __device__ __forceinline__ float pool_divisor(const Work &work,
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

template <int LANES, typename T, typename W>
static __global__ void __launch_bounds__(EACH_THREADS)
    pool_max(pool_work<T, W> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t o = space_item<LANES>(work.out, work.packs, i);
        const box_t box = pool_window(work, o.place.at);
        float best[LANES], v[LANES];
        int winner[LANES], at[OP_SPACE_MAX];

        for (int k = 0; k < LANES; k++) {
            winner[k] = -1;
            best[k] = 0;
        }
        BOX_EACH(box, at)
        {
            const int tap = pool_tap(work, o.place.at, at);

            pack_load(work.x + space_at<LANES>(work.in, work.packs, o, at), v);
            for (int k = 0; k < LANES; k++)
                if (winner[k] < 0 ||
                    (best[k] == best[k] && !(v[k] <= best[k]))) {
                    winner[k] = tap;
                    best[k] = v[k];
                }
        }
        pack_store(work.to + i * LANES, best);
        for (int k = 0; k < LANES && work.taps != NULL; k++)
            work.taps[i * LANES + k] = (W)winner[k];
    }
}

template <int LANES, typename T, typename W>
static __global__ void __launch_bounds__(EACH_THREADS)
    pool_max_gradient(pool_work<T, W> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t x = space_item<LANES>(work.in, work.packs, i);
        const box_t box = pool_holders(work, x.place.at);
        float sum[LANES] = {}, dy[LANES];
        int o[OP_SPACE_MAX];

        BOX_EACH(box, o)
        {
            const int64_t from = space_at<LANES>(work.out, work.packs, x, o);
            const int tap = pool_tap(work, o, x.place.at);

            pack_load(work.dy + from, dy);
            for (int k = 0; k < LANES; k++)
                sum[k] += (int)work.taps[from + k] == tap ? dy[k] : 0;
        }
        pack_store(work.to + i * LANES, sum);
    }
}

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS, EACH_FEW - 1)
    pool_mean(pool_work<T, uint8_t> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t o = space_item<LANES>(work.out, work.packs, i);
        const box_t box = pool_window(work, o.place.at);
        const float divisor = pool_divisor(work, o.place.at);
        float sum[LANES] = {}, v[LANES];
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        {
            pack_load(work.x + space_at<LANES>(work.in, work.packs, o, at), v);
            for (int k = 0; k < LANES; k++)
                sum[k] += v[k];
        }
        for (int k = 0; k < LANES; k++)
            sum[k] /= divisor;
        pack_store(work.to + i * LANES, sum);
    }
}

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS)
    pool_mean_gradient(pool_work<T, uint8_t> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t x = space_item<LANES>(work.in, work.packs, i);
        const box_t box = pool_holders(work, x.place.at);
        float sum[LANES] = {}, dy[LANES];
        int o[OP_SPACE_MAX];

        BOX_EACH(box, o)
        {
            const float divisor = pool_divisor(work, o);

            pack_load(work.dy + space_at<LANES>(work.out, work.packs, x, o),
                      dy);
            for (int k = 0; k < LANES; k++)
                sum[k] += dy[k] / divisor;
        }
        pack_store(work.to + i * LANES, sum);
    }
}

/* ---- the op -------------------------------------------------------------- */

static bool has_narrow_taps(const op_t *op)
{
    return op_window_taps(&op->config) <= NARROW_TAPS;
}

static err_code_t pool_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    if (op->config.training && op->config.kind == OP_MAXPOOL2D)
        op->workspace_bytes =
            (size_t)cuda_channels_elems(&op->out) *
            (has_narrow_taps(op) ? sizeof(uint8_t) : sizeof(int32_t));
    return ERR_OK;
}

/* [items] of [to], which is y or dx. */
template <int LANES, typename T, typename W>
static pool_work<T, W> work_of(const op_t *op, const op_args_t *args,
                               const op_desc_t *desc, void *to)
{
    const op_pool_t *pool = &op->config.pool;
    const int dims = op->config.in.ndim - 2;
    pool_work<T, W> work = {};

    work.in = space_of(&op->config.in);
    work.out = space_of(&op->out);
    work.packs = index_divisor_of(
        LANES == 1 ? 1 : cuda_channels_pitch(op->out.dims[1]) / LANES);
    space_three(pool->kernel, dims, 1, work.kernel);
    space_three(pool->stride, dims, 1, work.stride);
    space_three(pool->pad, dims, 0, work.pad);
    work.inside = pool->inside;
    work.items = cuda_channels_elems(desc) / LANES;
    work.x = (const T *)args->x;
    work.dy = (const T *)args->dy;
    work.to = (T *)to;
    work.taps = op->config.training ? (W *)args->workspace : NULL;
    return work;
}

template <int LANES, typename T, typename W>
static void max_start(const op_t *op, const op_args_t *args, bool back)
{
    const pool_work<T, W> work = work_of<LANES, T, W>(
        op, args, back ? &op->config.in : &op->out, back ? args->dx : args->y);
    const unsigned blocks = each_blocks(work.items, EACH_THREADS);

    if (back)
        LAUNCH((pool_max_gradient<LANES, T, W>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    else
        LAUNCH((pool_max<LANES, T, W>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
}

template <int LANES, typename T>
static void mean_start(const op_t *op, const op_args_t *args, bool back)
{
    const pool_work<T, uint8_t> work = work_of<LANES, T, uint8_t>(
        op, args, back ? &op->config.in : &op->out, back ? args->dx : args->y);
    const unsigned blocks = each_blocks(work.items, EACH_THREADS);

    if (back)
        LAUNCH((pool_mean_gradient<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    else
        LAUNCH((pool_mean<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
}

template <int LANES, typename T>
static void pool_start(const op_t *op, const op_args_t *args, bool back)
{
    if (op->config.kind != OP_MAXPOOL2D)
        mean_start<LANES, T>(op, args, back);
    else if (has_narrow_taps(op))
        max_start<LANES, T, uint8_t>(op, args, back);
    else
        max_start<LANES, T, int32_t>(op, args, back);
}

static err_code_t pool_run(const op_t *op, const op_args_t *args, bool back,
                           err_t *err)
{
    if (op->out.layout != NULL)
        pool_start<8, bf16_t>(op, args, back);
    else
        pool_start<1, float>(op, args, back);
    return cuda_started(op, err);
}

static err_code_t pool_forward(op_t *op, const op_args_t *args, err_t *err)
{
    return pool_run(op, args, false, err);
}

static err_code_t pool_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return op->config.need_dx ? pool_run(op, args, true, err) : ERR_OK;
}

extern "C" const op_kernel_t cuda_pool_kernel = {pool_open, NULL, pool_forward,
                                                 pool_backward};
