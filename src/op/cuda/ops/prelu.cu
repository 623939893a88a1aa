/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* prelu: y = x > 0 ? x : a x, with one slope a, or one for each channel. da is
 * the sum of x dy over the elements where x is not above 0; dx is written in
 * the same pass. */
#include "op/cuda/device/channels.cuh"

namespace
{

struct prelu_value {
    index_divisor_t slopes, space; /* slopes: 1, or the number of channels */
    const float *x, *a;
    float *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(x + i, v);
        for (int k = 0; k < N; k++) {
            int64_t plane = index_div(i + k, space);
            const float slope = a[index_split(&plane, slopes)];

            v[k] = v[k] > 0 ? v[k] : slope * v[k];
        }
        pack_store(y + i, v);
    }
};

struct prelu_sums {
    const float *x, *a, *dy;
    float *dx, *da; /* dx NULL: not wanted */

    __device__ void term(int64_t c, int64_t n, int64_t at, double *sums) const
    {
        const float v = x[at], d = dy[at];

        (void)n;
        if (!(v > 0))
            sums[0] += (double)v * d;
        if (dx != NULL)
            dx[at] = v > 0 ? d : a[c] * d;
    }

    __device__ void finish(int64_t c, const double *sums) const
    {
        da[c] = (float)sums[0];
    }
};

} // namespace

static channels shape_of(const op_t *op)
{
    const op_desc_t *in = &op->config.in;

    return op->config.channels
               ? channels_of(in->dims[0], in->dims[1], op_desc_space(in))
               : channels_of(1, 1, op_desc_elems(in));
}

static err_code_t prelu_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training)
        op->scratch_bytes = channels_bytes(shape_of(op));
    return ERR_OK;
}

static err_code_t prelu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const channels shape = shape_of(op);
    const prelu_value work = {shape.by_C, shape.by_S, (const float *)args->x,
                              (const float *)args->params[0], (float *)args->y};

    each_start<4>(work, op_desc_elems(&op->config.in),
                  pack_aligned(work.x, work.y), cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t prelu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const prelu_sums sums = {
        (const float *)args->x, (const float *)args->params[0],
        (const float *)args->dy, op->config.need_dx ? (float *)args->dx : NULL,
        (float *)args->dparams[0]};

    channels_start(sums, shape_of(op), args->scratch, cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_prelu_kernel = {
    prelu_open, NULL, prelu_forward, prelu_backward};
