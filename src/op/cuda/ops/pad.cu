/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* pad: elements around the spatial dimensions, a constant or x mirrored at its
 * edges; op_pad_source has the rule. A thread computes one element of y, or of
 * dx: that is the sum of dy over all copies of the element of x. */
#include "op/cuda/device/space.cuh"

namespace
{

struct pad_work {
    space_t in, out;
    int before[OP_SPACE_MAX];
    bool reflect;
    float value;
    int64_t count; /* elements that threads compute */
    const float *from;
    float *to;
};

} // namespace

/* op_pad_source; -1: the constant. */
static __device__ __forceinline__ int pad_source(const pad_work &work, int d,
                                                 int at)
{
    const int size = work.in.size[d], source = at - work.before[d];

    if (source >= 0 && source < size)
        return source;
    if (!work.reflect)
        return -1;
    return source < 0 ? -source : 2 * (size - 1) - source;
}

static __global__ void __launch_bounds__(EACH_THREADS) pad_value(pad_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        place_t p = space_place(work.out, i);
        bool inside = true;

        for (int d = 0; d < OP_SPACE_MAX; d++) {
            p.at[d] = pad_source(work, d, p.at[d]);
            inside = inside && p.at[d] >= 0;
        }
        work.to[i] = inside ? work.from[p.plane * work.in.count +
                                        space_index(work.in, p.at)]
                            : work.value;
    }
}

/* Up to three elements of y along dimension [d] are copies of index [i] of x.
 * Returns the index of copy [k]; -1: there are less. */
static __device__ __forceinline__ int pad_copy(const pad_work &work, int d,
                                               int i, int k)
{
    const int size = work.in.size[d], before = work.before[d];

    if (k == 1)
        return before + i;
    if (!work.reflect)
        return -1;
    if (k == 0)
        return i > 0 && i <= before ? before - i : -1;
    return i < size - 1 && before + 2 * (size - 1) - i < work.out.size[d]
               ? before + 2 * (size - 1) - i
               : -1;
}

static __global__ void __launch_bounds__(EACH_THREADS)
    pad_gradient(pad_work work)
{
    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        const place_t p = space_place(work.in, i);
        const float *dy = work.from + p.plane * work.out.count;
        float sum = 0;

        for (int copy = 0; copy < 27; copy++) {
            const int at[OP_SPACE_MAX] = {
                pad_copy(work, 0, p.at[0], copy / 9),
                pad_copy(work, 1, p.at[1], copy / 3 % 3),
                pad_copy(work, 2, p.at[2], copy % 3)};

            if (at[0] >= 0 && at[1] >= 0 && at[2] >= 0)
                sum += dy[space_index(work.out, at)];
        }
        work.to[i] = sum;
    }
}

static err_code_t pad_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

static pad_work work_of(const op_t *op, const void *from, void *to)
{
    const op_pad_t *pad = &op->config.pad;
    pad_work work = {};

    work.in = space_of(&op->config.in);
    work.out = space_of(&op->out);
    space_three(pad->before, op->config.in.ndim - 2, 0, work.before);
    work.reflect = pad->reflect;
    work.value = (float)pad->value;
    work.from = (const float *)from;
    work.to = (float *)to;
    return work;
}

static err_code_t pad_forward(op_t *op, const op_args_t *args, err_t *err)
{
    pad_work work = work_of(op, args->x, args->y);

    work.count = op_desc_elems(&op->out);
    LAUNCH(pad_value, each_blocks(work.count, EACH_THREADS), EACH_THREADS, 0,
           cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t pad_backward(op_t *op, const op_args_t *args, err_t *err)
{
    pad_work work = work_of(op, args->dy, args->dx);

    if (!op->config.need_dx)
        return ERR_OK;
    work.count = op_desc_elems(&op->config.in);
    LAUNCH(pad_gradient, each_blocks(work.count, EACH_THREADS), EACH_THREADS, 0,
           cuda_stream(args), work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_pad_kernel = {pad_open, NULL, pad_forward,
                                                pad_backward};
