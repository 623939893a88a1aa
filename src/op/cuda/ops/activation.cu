/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Activations: y = f(x), dx = dy f', with f' computed from y where that is
 * possible. */
#include "op/cuda/device/activation.cuh"
#include "op/cuda/device/each.cuh"

namespace
{

struct activation_work {
    op_kind_t kind;
    float a;
    const float *x;
    float *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            v[k] = activation_value(kind, v[k], a);
        pack_store(y + i, v);
    }
};

struct activation_gradient {
    op_kind_t kind;
    float a;
    const float *of, *dy;
    float *dx;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N], d[N];

        pack_load(of + i, v);
        pack_load(dy + i, d);
        for (int k = 0; k < N; k++)
            d[k] *= activation_slope(kind, v[k], a);
        pack_store(dx + i, d);
    }
};

} // namespace

static err_code_t activation_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_y = op->in_place = activation_reads_y(op->config.kind);
    op->reads_x = !op->reads_y;
    return ERR_OK;
}

static err_code_t activation_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const activation_work work = {op->config.kind, (float)op->config.alpha,
                                  (const float *)args->x, (float *)args->y};

    each_start<4>(work, op_desc_elems(&op->config.in),
                  pack_aligned(work.x, work.y), cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t activation_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    const activation_gradient work = {
        op->config.kind, (float)op->config.alpha,
        (const float *)(op->reads_y ? args->y : args->x),
        (const float *)args->dy, (float *)args->dx};

    if (!op->config.need_dx)
        return ERR_OK;
    each_start<4>(work, op_desc_elems(&op->config.in),
                  pack_aligned(work.of, work.dy, work.dx), cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_activation_kernel = {
    activation_open, NULL, activation_forward, activation_backward};
