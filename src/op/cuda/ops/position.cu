/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* position: y = x + w, where w has the shape of a sample; dw is the sum of dy
 * over the samples. */
#include "op/cuda/device/channels.cuh"
#include "op/cuda/device/copy.cuh"

namespace
{

struct position_value {
    index_divisor_t sample; /* elements of a sample */
    const float *x, *w;
    float *y;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t n = i;
        const int64_t s = index_split(&n, sample);
        float v[N], shift[N];

        pack_load(x + i, v);
        pack_load(w + s, shift);
        for (int k = 0; k < N; k++)
            v[k] += shift[k];
        pack_store(y + i, v);
    }
};

struct position_sums {
    const float *dy;
    float *dw;

    __device__ void term(int64_t c, int64_t n, int64_t at, double *sums) const
    {
        (void)c;
        (void)n;
        sums[0] += dy[at];
    }

    __device__ void finish(int64_t c, const double *sums) const
    {
        dw[c] = (float)sums[0];
    }
};

} // namespace

static channels shape_of(const op_t *op)
{
    return channels_of(op->config.in.dims[0], op_desc_sample(&op->config.in),
                       1);
}

static err_code_t position_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    if (op->config.training)
        op->scratch_bytes = channels_bytes(shape_of(op));
    return ERR_OK;
}

static err_code_t position_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const position_value work = {
        index_divisor_of(op_desc_sample(&op->config.in)),
        (const float *)args->x, (const float *)args->params[0],
        (float *)args->y};

    each_start<4>(work, op_desc_elems(&op->config.in),
                  work.sample.by % 4 == 0 &&
                      pack_aligned(work.x, work.w, work.y),
                  cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t position_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const position_sums sums = {(const float *)args->dy,
                                (float *)args->dparams[0]};

    channels_start(sums, shape_of(op), args->scratch, cuda_stream(args));
    if (op->config.need_dx)
        copy_start(args->dy, args->dx, op_desc_elems(&op->config.in),
                   cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_position_kernel = {
    position_open, NULL, position_forward, position_backward};
