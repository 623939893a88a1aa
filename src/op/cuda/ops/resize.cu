/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * upsample and upsample_linear; op/ref/upsample.c and upsample_linear.c have
 * the rules. A thread computes one element of y, or of dx: that is the sum over
 * the elements of y that were computed from the element of x.
 */
#include "op/cuda/device/space.cuh"

namespace
{

struct resize_work {
    space_t in, out;
    int factor[OP_SPACE_MAX];
    int64_t count; /* elements that threads compute */
    const float *x, *dy;
    float *to; /* y or dx */
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
    /* twice the factor times the position in x */
    const int64_t twice = 2 * (int64_t)at + 1 - factor;
    tap out = {0, 0, 0};

    if (twice > 0) {
        out.first = (int)(twice / (2 * factor));
        out.weight =
            (float)(twice % (2 * (int64_t)factor)) / (float)(2 * factor);
    }
    out.second = min(out.first + 1, size - 1);
    return out;
}

/* The elements of y that are interpolated from element [i] of x. */
static __device__ __forceinline__ box_t readers_of(const resize_work &work,
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
static __device__ __forceinline__ float tap_weight(const resize_work &work,
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

static __global__ void __launch_bounds__(EACH_THREADS)
    nearest_value(resize_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        place_t p = space_place(work.out, i);

        for (int d = 0; d < OP_SPACE_MAX; d++)
            p.at[d] /= work.factor[d];
        work.to[i] =
            work.x[p.plane * work.in.count + space_index(work.in, p.at)];
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    nearest_gradient(resize_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const float *dy = work.dy + p.plane * work.out.count;
        float sum = 0;
        int at[OP_SPACE_MAX];
        box_t box;

        for (int d = 0; d < OP_SPACE_MAX; d++) {
            box.from[d] = p.at[d] * work.factor[d];
            box.to[d] = box.from[d] + work.factor[d];
        }
        BOX_EACH(box, at)
        sum += dy[space_index(work.out, at)];
        work.to[i] = sum;
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    linear_value(resize_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.out, i);
        const float *x = work.x + p.plane * work.in.count;
        tap t[OP_SPACE_MAX];
        float sum = 0;

        for (int d = 0; d < OP_SPACE_MAX; d++)
            t[d] = tap_of(p.at[d], work.factor[d], work.in.size[d]);
        for (int corner = 0; corner < 1 << OP_SPACE_MAX; corner++) {
            float weight = 1;
            int at[OP_SPACE_MAX];

            for (int d = 0; d < OP_SPACE_MAX; d++) {
                const bool second = (corner >> d & 1) != 0;

                at[d] = second ? t[d].second : t[d].first;
                weight *= second ? t[d].weight : 1 - t[d].weight;
            }
            if (weight != 0)
                sum += weight * x[space_index(work.in, at)];
        }
        work.to[i] = sum;
    }
}

static __global__ void __launch_bounds__(EACH_THREADS)
    linear_gradient(resize_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const float *dy = work.dy + p.plane * work.out.count;
        const box_t box = readers_of(work, p.at);
        float sum = 0;
        int at[OP_SPACE_MAX];

        BOX_EACH(box, at)
        {
            const float weight = tap_weight(work, at, p.at);

            if (weight != 0)
                sum += weight * dy[space_index(work.out, at)];
        }
        work.to[i] = sum;
    }
}

/* ---- the op -------------------------------------------------------------- */

static err_code_t resize_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

static resize_work work_of(const op_t *op, const op_args_t *args, void *to)
{
    resize_work work = {};

    work.in = space_of(&op->config.in);
    work.out = space_of(&op->out);
    space_three(op->config.view.dims, op->config.in.ndim - 2, 1, work.factor);
    work.x = (const float *)args->x;
    work.dy = (const float *)args->dy;
    work.to = (float *)to;
    return work;
}

static err_code_t resize_forward(op_t *op, const op_args_t *args, err_t *err)
{
    resize_work work = work_of(op, args, args->y);
    unsigned blocks;

    work.count = op_desc_elems(&op->out);
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_UPSAMPLE)
        LAUNCH(nearest_value, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    else
        LAUNCH(linear_value, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t resize_backward(op_t *op, const op_args_t *args, err_t *err)
{
    resize_work work = work_of(op, args, args->dx);
    unsigned blocks;

    if (!op->config.need_dx)
        return ERR_OK;
    work.count = op_desc_elems(&op->config.in);
    blocks = each_blocks(work.count, EACH_THREADS);
    if (op->config.kind == OP_UPSAMPLE)
        LAUNCH(nearest_gradient, blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    else
        LAUNCH(linear_gradient, blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_resize_kernel = {
    resize_open, NULL, resize_forward, resize_backward};
