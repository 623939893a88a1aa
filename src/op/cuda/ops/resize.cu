/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * upsample and upsample_linear; op/ref/upsample.c and upsample_linear.c have
 * the rules. A thread computes one item of y, or of dx (space.cuh): that is the
 * sum over the elements of y that were computed from the element of x.
 */
#include "op/cuda/channels.h"
#include "op/cuda/device/space.cuh"

namespace
{

/* How y is made of x. */
struct resize_shape {
    space_t in, out;
    index_divisor_t packs; /* see space.cuh */
    int factor[OP_SPACE_MAX];
};

template <typename T> struct resize_work {
    resize_shape s;
    int64_t items; /* that threads compute */
    const T *x, *dy;
    T *to; /* y or dx */
};

/* op_tap_t along one dimension. */
struct tap {
    int first, second;
    float weight;
};

} // namespace

/* op_upsample_tap. In float32 the position is exact up to 2^22 elements. */
static __device__ __forceinline__ tap tap_of(int at, int factor, int size)
{
    /* 2 * factor * (position in x); fits into 32 bits */
    const int64_t twice = 2 * (int64_t)at + 1 - factor;
    const uint32_t whole = 2 * (uint32_t)factor;
    tap out = {0, 0, 0};

    if (twice > 0) {
        out.first = (int)((uint32_t)twice / whole);
        out.weight = (float)((uint32_t)twice % whole) / (float)whole;
    }
    out.second = min(out.first + 1, size - 1);
    return out;
}

/* The elements of y that are interpolated from element [i] of x. */
static __device__ __forceinline__ box_t readers_of(const resize_shape &work,
                                                   const int *i)
{
    box_t box;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int factor = work.factor[d];

        box.from[d] = max(i[d] * factor - (factor + 1) / 2, 0);
        box.to[d] =
            min((i[d] + 1) * factor + (factor + 1) / 2, work.out.size[d]);
    }
    return box;
}

/* The weight with which element [at] of y reads element [i] of x. */
static __device__ __forceinline__ float tap_weight(const resize_shape &work,
                                                   const int *at, const int *i)
{
    float weight = 1;

    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const tap t = tap_of(at[d], work.factor[d], work.in.size[d]);

        weight *= (t.first == i[d] ? 1 - t.weight : 0) +
                  (t.second == i[d] ? t.weight : 0);
    }
    return weight;
}

/* ---- kernels ------------------------------------------------------------- */

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS)
    nearest_value(resize_work<T> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t item = space_item<LANES>(work.s.out, work.s.packs, i);
        int at[OP_SPACE_MAX];
        float v[LANES];

        for (int d = 0; d < OP_SPACE_MAX; d++)
            at[d] = item.place.at[d] / work.s.factor[d];
        pack_load(work.x + space_at<LANES>(work.s.in, work.s.packs, item, at),
                  v);
        pack_store(work.to + i * LANES, v);
    }
}

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS, EACH_FEW)
    nearest_gradient(resize_work<T> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t item = space_item<LANES>(work.s.in, work.s.packs, i);
        float sum[LANES] = {}, v[LANES];
        int at[OP_SPACE_MAX];
        box_t box;

        for (int d = 0; d < OP_SPACE_MAX; d++) {
            box.from[d] = item.place.at[d] * work.s.factor[d];
            box.to[d] = box.from[d] + work.s.factor[d];
        }
        BOX_EACH(box, at)
        {
            pack_load(work.dy +
                          space_at<LANES>(work.s.out, work.s.packs, item, at),
                      v);
            for (int k = 0; k < LANES; k++)
                sum[k] += v[k];
        }
        pack_store(work.to + i * LANES, sum);
    }
}

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS)
    linear_value(resize_work<T> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t item = space_item<LANES>(work.s.out, work.s.packs, i);
        float sum[LANES] = {}, v[LANES];
        tap t[OP_SPACE_MAX];

        for (int d = 0; d < OP_SPACE_MAX; d++)
            t[d] =
                tap_of(item.place.at[d], work.s.factor[d], work.s.in.size[d]);
        for (int corner = 0; corner < 1 << OP_SPACE_MAX; corner++) {
            float weight = 1;
            int at[OP_SPACE_MAX];

            for (int d = 0; d < OP_SPACE_MAX; d++) {
                const bool second = (corner >> d & 1) != 0;

                at[d] = second ? t[d].second : t[d].first;
                weight *= second ? t[d].weight : 1 - t[d].weight;
            }
            if (weight == 0)
                continue;
            pack_load(
                work.x + space_at<LANES>(work.s.in, work.s.packs, item, at), v);
            for (int k = 0; k < LANES; k++)
                sum[k] += weight * v[k];
        }
        pack_store(work.to + i * LANES, sum);
    }
}

template <int LANES, typename T>
static __global__ void __launch_bounds__(EACH_THREADS)
    linear_gradient(resize_work<T> work)
{
    for (int64_t i = each_first(); i < work.items; i += each_step()) {
        const item_t item = space_item<LANES>(work.s.in, work.s.packs, i);
        const box_t box = readers_of(work.s, item.place.at);
        float sum[LANES] = {}, v[LANES];
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        {
            const float weight = tap_weight(work.s, at, item.place.at);

            if (weight == 0)
                continue;
            pack_load(work.dy +
                          space_at<LANES>(work.s.out, work.s.packs, item, at),
                      v);
            for (int k = 0; k < LANES; k++)
                sum[k] += weight * v[k];
        }
        pack_store(work.to + i * LANES, sum);
    }
}

/* ---- the op -------------------------------------------------------------- */

static err_code_t resize_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

template <int LANES, typename T>
static resize_work<T> work_of(const op_t *op, const op_args_t *args,
                              const op_desc_t *desc, void *to)
{
    resize_work<T> work = {};

    work.s.in = space_of(&op->config.in);
    work.s.out = space_of(&op->out);
    work.s.packs = index_divisor_of(
        LANES == 1 ? 1 : cuda_channels_pitch(op->out.dims[1]) / LANES);
    space_three(op->config.view.dims, op->config.in.ndim - 2, 1, work.s.factor);
    work.items = cuda_channels_elems(desc) / LANES;
    work.x = (const T *)args->x;
    work.dy = (const T *)args->dy;
    work.to = (T *)to;
    return work;
}

template <int LANES, typename T>
static void value_start(const op_t *op, const op_args_t *args)
{
    const resize_work<T> work = work_of<LANES, T>(op, args, &op->out, args->y);
    const unsigned blocks = each_blocks(work.items, EACH_THREADS);

    if (op->config.kind == OP_UPSAMPLE)
        LAUNCH((nearest_value<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    else
        LAUNCH((linear_value<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
}

template <int LANES, typename T>
static void gradient_start(const op_t *op, const op_args_t *args)
{
    const resize_work<T> work =
        work_of<LANES, T>(op, args, &op->config.in, args->dx);
    const unsigned blocks = each_blocks(work.items, EACH_THREADS);

    if (op->config.kind == OP_UPSAMPLE)
        LAUNCH((nearest_gradient<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
    else
        LAUNCH((linear_gradient<LANES, T>), blocks, EACH_THREADS, 0,
               cuda_stream(args), work);
}

static err_code_t resize_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->out.layout != NULL)
        value_start<8, bf16_t>(op, args);
    else
        value_start<1, float>(op, args);
    return cuda_started(op, err);
}

static err_code_t resize_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    if (op->out.layout != NULL)
        gradient_start<8, bf16_t>(op, args);
    else
        gradient_start<1, float>(op, args);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_resize_kernel = {
    resize_open, NULL, resize_forward, resize_backward};
