/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* relu: y = max(x, 0), dx = dy where y > 0. NaN stays NaN. */
#include "op/cuda/device/each.cuh"

namespace
{

struct relu_value {
    const float *x;
    float *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            v[k] = v[k] < 0 ? 0 : v[k];
        pack_store(y + i, v);
    }
};

struct relu_gradient {
    const float *y, *dy;
    float *dx;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N], d[N];

        pack_load(y + i, v);
        pack_load(dy + i, d);
        for (int k = 0; k < N; k++)
            d[k] = v[k] > 0 ? d[k] : 0;
        pack_store(dx + i, d);
    }
};

} // namespace

static err_code_t relu_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = true;
    return ERR_OK;
}

static err_code_t relu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const relu_value work = {(const float *)args->x, (float *)args->y};

    each_start<4>(work, op_desc_elems(&op->config.in),
                  pack_aligned(work.x, work.y), cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t relu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const relu_gradient work = {(const float *)args->y, (const float *)args->dy,
                                (float *)args->dx};

    if (!op->config.need_dx)
        return ERR_OK;
    each_start<4>(work, op_desc_elems(&op->config.in),
                  pack_aligned(work.y, work.dy, work.dx), cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_relu_kernel = {relu_open, NULL, relu_forward,
                                                 relu_backward};
