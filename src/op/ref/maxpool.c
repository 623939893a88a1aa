/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool: y[n,c,oh,ow] = max over the window of x; padding is never the
 * maximum. Of equal values the first in row order wins. The workspace keeps the
 * winner of each window as int64 index into x, and dx sends dy there.
 */
#include "op/ref/ref.h"

static err_code_t ref_maxpool_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    op->reads_x = false;
    return ERR_OK;
}

/* Index into x of the maximum of window (oh,ow) of [plane] = n*C + c. */
static int64_t ref_maxpool_winner(const op_t *op, const void *x, int64_t plane,
                                  int64_t oh, int64_t ow)
{
    const op_pool_t *pool = &op->config.pool;
    op_type_t type = op->config.in.type;
    int64_t H = op->config.in.dims[2], W = op->config.in.dims[3];
    int64_t winner = -1;

    for (int64_t kh = 0; kh < pool->kernel[0]; kh++)
        for (int64_t kw = 0; kw < pool->kernel[1]; kw++) {
            int64_t h = oh * pool->stride[0] - pool->pad[0] + kh;
            int64_t w = ow * pool->stride[1] - pool->pad[1] + kw;
            int64_t i = (plane * H + h) * W + w;

            if (h < 0 || h >= H || w < 0 || w >= W)
                continue;
            if (winner < 0 || ref_get(type, x, i) > ref_get(type, x, winner))
                winner = i;
        }
    return winner;
}

static err_code_t ref_maxpool_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t planes = op->out.dims[0] * op->out.dims[1];
    int64_t OH = op->out.dims[2], OW = op->out.dims[3];
    int64_t *winners = args->workspace;

    (void)err;
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t oh = 0; oh < OH; oh++)
            for (int64_t ow = 0; ow < OW; ow++) {
                int64_t i = (plane * OH + oh) * OW + ow;
                int64_t winner = ref_maxpool_winner(op, args->x, plane, oh, ow);

                ref_put(type, args->y, i, ref_get(type, args->x, winner));
                if (op->config.training)
                    winners[i] = winner;
            }
    return ERR_OK;
}

static err_code_t ref_maxpool_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t in = op_desc_elems(&op->config.in), out = op_desc_elems(&op->out);
    const int64_t *winners = args->workspace;

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t i = 0; i < in; i++)
        ref_put(type, args->dx, i, 0);
    for (int64_t i = 0; i < out; i++)
        ref_put(type, args->dx, winners[i],
                ref_get(type, args->dx, winners[i]) +
                    ref_get(type, args->dy, i));
    return ERR_OK;
}

const op_kernel_t ref_maxpool_kernel = {
    .open = ref_maxpool_open,
    .forward = ref_maxpool_forward,
    .backward = ref_maxpool_backward,
};
