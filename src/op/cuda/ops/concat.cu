/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * concat and slice. With respect to the axis, a tensor is [outer, length,
 * inner]; a part of it is a run of elements in each of [outer] rows. The inputs
 * of a concat are parts of y, and the output of a slice is a part of x. A
 * concat along the channels also takes tensors with channels last.
 */
#include "op/cuda/channels.h"
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

namespace
{

/* A run of [size] elements, [start] elements after the beginning of each row of
 * [pitch] elements. */
struct part {
    int64_t outer, pitch, start, size;
    index_divisor_t by_pitch, by_size;
};

/* Copy the part of a tensor from or to a tensor of its own. */
struct part_copy {
    part p;
    bool gather; /* from the whole; otherwise to the whole */
    const float *from;
    float *to;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t outer = i;
        const int64_t in_row = index_split(&outer, p.by_size);
        const int64_t whole = outer * p.pitch + p.start + in_row;
        float v[N];

        pack_load(from + (gather ? whole : i), v);
        pack_store(to + (gather ? i : whole), v);
    }
};

/* The whole tensor: the part, and zeros around it. */
struct part_pad {
    part p;
    const float *from;
    float *to;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t outer = i;
        const int64_t in_part = index_split(&outer, p.by_pitch) - p.start;
        float v[N] = {};

        if (in_part >= 0 && in_part < p.size)
            pack_load(from + outer * p.size + in_part, v);
        pack_store(to + i, v);
    }
};

} // namespace

static part part_of(const op_desc_t *whole, int axis, int64_t start,
                    int64_t size)
{
    int64_t inner = 1;
    part p = {};

    p.outer = 1;

    for (int i = 0; i < axis; i++)
        p.outer *= whole->dims[i];
    for (int i = axis + 1; i < whole->ndim; i++)
        inner *= whole->dims[i];
    p.pitch = whole->dims[axis] * inner;
    p.start = start * inner;
    p.size = size * inner;
    p.by_pitch = index_divisor_of(p.pitch);
    p.by_size = index_divisor_of(p.size);
    return p;
}

/* Do packs of 4 neither cross the borders of the part nor an address of 16
 * bytes? */
static bool is_wide(const part &p, const void *from, const void *to)
{
    return p.pitch % 4 == 0 && p.start % 4 == 0 && p.size % 4 == 0 &&
           pack_aligned(from, to);
}

static void copy_start(const part &p, bool gather, const void *from, void *to,
                       cudaStream_t stream)
{
    each_start<4>(part_copy{p, gather, (const float *)from, (float *)to},
                  p.outer * p.size, is_wide(p, from, to), stream);
}

static err_code_t part_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* ---- concat -------------------------------------------------------------- */

/* Input [k] as a part of y. Input 0 is x. */
static part concat_part(const op_t *op, int k)
{
    const op_config_t *config = &op->config;
    const int axis = config->view.axis;
    int64_t start = 0, size = config->in.dims[axis];

    for (int i = 0; i < k; i++) {
        start += size;
        size = config->other[i].dims[axis];
    }
    return part_of(&op->out, axis, start, size);
}

/* Do all tensors have the layout with channels last? */
static bool is_last(const op_t *op)
{
    return op->out.layout != NULL;
}

/* Channels start .. start + C - 1 of a tensor with channels last. */
struct last_part {
    int64_t pitch, start, C;
};

namespace
{

/* y, eight channels at a position. */
struct last_value {
    int inputs;
    index_divisor_t pitch;
    last_part part[OP_INPUTS_MAX]; /* pitch is that of the input */
    const bf16_t *from[OP_INPUTS_MAX];
    bf16_t *y;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t row = i;
        const int64_t first = index_split(&row, pitch);
        float v[N] = {};

        for (int input = 0; input < inputs; input++) {
            const last_part &p = part[input];
            const int64_t c = first - p.start;
            const bf16_t *x = from[input] + row * p.pitch + c;

            if (c + N <= 0 || c >= p.C)
                continue;
            if (N == 8 && c % 8 == 0 && c + N <= p.C)
                pack_load(x, v);
            else
                for (int k = 0; k < N; k++)
                    if (c + k >= 0 && c + k < p.C)
                        v[k] = pack_get(x, k);
        }
        pack_store(y + i, v);
    }
};

/* The gradient of an input, eight channels at a position. */
struct last_gradient {
    last_part p;              /* pitch is that of the input */
    index_divisor_t by_pitch; /* p.pitch */
    int64_t pitch;            /* of y */
    const bf16_t *dy;
    bf16_t *to;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t row = i;
        const int64_t c = index_split(&row, by_pitch);
        const bf16_t *from = dy + row * pitch + p.start + c;
        float v[N] = {};

        if (N == 8 && p.start % 8 == 0 && c + N <= p.C)
            pack_load(from, v);
        else
            for (int k = 0; k < N; k++)
                if (c + k < p.C)
                    v[k] = pack_get(from, k);
        pack_store(to + i, v);
    }
};

} // namespace

/* Input [k] as channels of y; the pitch is its own. */
static last_part last_part_of(const op_t *op, int k)
{
    const op_desc_t *desc = k == 0 ? &op->config.in : &op->config.other[k - 1];
    last_part p = {cuda_channels_pitch(desc->dims[1]), 0, desc->dims[1]};

    for (int i = 0; i < k; i++)
        p.start +=
            i == 0 ? op->config.in.dims[1] : op->config.other[i - 1].dims[1];
    return p;
}

static err_code_t last_forward(const op_t *op, const op_args_t *args,
                               err_t *err)
{
    last_value work = {};

    work.inputs = 1 + op->config.others;
    work.pitch = index_divisor_of(cuda_channels_pitch(op->out.dims[1]));
    for (int k = 0; k < work.inputs; k++) {
        work.part[k] = last_part_of(op, k);
        work.from[k] = (const bf16_t *)(k == 0 ? args->x : args->other[k - 1]);
    }
    work.y = (bf16_t *)args->y;
    each_start<8>(work, cuda_channels_elems(&op->out), true, cuda_stream(args));
    return cuda_started(op, err);
}

static void last_gradient_start(const op_t *op, const op_args_t *args, int k,
                                void *to)
{
    const op_desc_t *desc = k == 0 ? &op->config.in : &op->config.other[k - 1];
    const last_part p = last_part_of(op, k);
    const last_gradient work = {p, index_divisor_of(p.pitch),
                                cuda_channels_pitch(op->out.dims[1]),
                                (const bf16_t *)args->dy, (bf16_t *)to};

    each_start<8>(work, cuda_channels_elems(desc), true, cuda_stream(args));
}

static err_code_t concat_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (is_last(op))
        return last_forward(op, args, err);
    for (int k = 0; k <= op->config.others; k++)
        copy_start(concat_part(op, k), false,
                   k == 0 ? args->x : args->other[k - 1], args->y,
                   cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t concat_backward(op_t *op, const op_args_t *args, err_t *err)
{
    for (int k = 0; k <= op->config.others; k++) {
        void *to = k > 0                ? args->dother[k - 1]
                   : op->config.need_dx ? args->dx
                                        : NULL;

        if (to != NULL && is_last(op))
            last_gradient_start(op, args, k, to);
        else if (to != NULL)
            copy_start(concat_part(op, k), true, args->dy, to,
                       cuda_stream(args));
    }
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_concat_kernel = {
    part_open, NULL, concat_forward, concat_backward};

/* ---- slice --------------------------------------------------------------- */

static part slice_part(const op_t *op)
{
    const op_view_t *view = &op->config.view;

    return part_of(&op->config.in, view->axis, view->start, view->size);
}

static err_code_t slice_forward(op_t *op, const op_args_t *args, err_t *err)
{
    copy_start(slice_part(op), true, args->x, args->y, cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t slice_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const part p = slice_part(op);

    if (op->config.need_dx)
        each_start<4>(part_pad{p, (const float *)args->dy, (float *)args->dx},
                      op_desc_elems(&op->config.in),
                      is_wide(p, args->dy, args->dx), cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_slice_kernel = {
    part_open, NULL, slice_forward, slice_backward};
