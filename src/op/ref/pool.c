/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool: y[n,c,s] is the maximum over the window of x. Padding is never the
 * maximum. The first of equal values in row order is taken, and NaN before all
 * numbers. The workspace keeps for each window the index (int64) of the maximum
 * in its plane of x, to which dy is added in dx.
 *
 * avgpool: y is the sum over the window divided by the number of its taps or,
 * with pool.inside, by the number of its taps inside x. In dx each element of
 * the window gets dy divided by this number. Taps after the padding, which
 * exist only with pool.ceil, are not counted.
 */
#include "op/op_desc.h"
#include "op/ref/window.h"

static ref_window_t ref_pool_window(const op_t *op)
{
    const op_pool_t *pool = &op->config.pool;

    return ref_window_make(op, pool->kernel, pool->stride, pool->pad, NULL);
}

static err_code_t ref_pool_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training && op->config.kind == OP_MAXPOOL2D)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    op->reads_x = false;
    return ERR_OK;
}

/* Index of the maximum of window [o], in the plane of x that begins at element
 * [x0]. */
static int64_t ref_pool_winner(const op_t *op, const ref_window_t *window,
                               const void *x, int64_t x0, int64_t o)
{
    op_type_t type = op->config.in.type;
    int64_t winner = -1;
    double best = 0;

    for (int64_t tap = 0; tap < window->taps; tap++) {
        int64_t i = ref_window_at(window, o, tap);
        double value = i < 0 ? 0 : ref_get(type, x, x0 + i);

        if (i >= 0 && (winner < 0 || (best == best && !(value <= best)))) {
            winner = i;
            best = value;
        }
    }
    return winner;
}

/* Number of taps of window [o] that are in x or its padding. */
static double ref_pool_taps(const ref_window_t *window, int64_t o)
{
    int64_t taps = 1;

    for (int i = window->space - 1; i >= 0; i--) {
        int64_t first = o % window->out[i] * window->stride[i] - window->pad[i];
        int64_t left = window->in[i] + window->pad[i] - first;

        taps *= left < window->kernel[i] ? left : window->kernel[i];
        o /= window->out[i];
    }
    return (double)taps;
}

/* The number by which the sum over window [o] is divided. */
static double ref_pool_divisor(const op_t *op, const ref_window_t *window,
                               int64_t o)
{
    int64_t inside = 0;

    if (!op->config.pool.inside)
        return ref_pool_taps(window, o);
    for (int64_t tap = 0; tap < window->taps; tap++)
        inside += ref_window_at(window, o, tap) >= 0;
    return (double)inside;
}

static double ref_pool_mean(const op_t *op, const ref_window_t *window,
                            const void *x, int64_t x0, int64_t o)
{
    double sum = 0;

    for (int64_t tap = 0; tap < window->taps; tap++) {
        int64_t i = ref_window_at(window, o, tap);

        if (i >= 0)
            sum += ref_get(op->config.in.type, x, x0 + i);
    }
    return sum / ref_pool_divisor(op, window, o);
}

static err_code_t ref_pool_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    ref_window_t window = ref_pool_window(op);
    int64_t planes = op->out.dims[0] * op->out.dims[1];
    int64_t *winners = args->workspace;

    (void)err;
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t o = 0; o < window.outs; o++) {
            int64_t x0 = plane * window.ins, i = plane * window.outs + o;
            int64_t winner;

            if (op->config.kind != OP_MAXPOOL2D) {
                ref_put(type, args->y, i,
                        ref_pool_mean(op, &window, args->x, x0, o));
                continue;
            }
            winner = ref_pool_winner(op, &window, args->x, x0, o);
            ref_put(type, args->y, i, ref_get(type, args->x, x0 + winner));
            if (op->config.training)
                winners[i] = winner;
        }
    return ERR_OK;
}

static void ref_pool_add(op_type_t type, void *to, int64_t i, double value)
{
    ref_put(type, to, i, ref_get(type, to, i) + value);
}

static err_code_t ref_pool_backward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    ref_window_t window = ref_pool_window(op);
    int64_t in = op_desc_elems(&op->config.in), out = op_desc_elems(&op->out);
    const int64_t *winners = args->workspace;

    (void)err;
    for (int64_t i = 0; op->config.need_dx && i < in; i++)
        ref_put(type, args->dx, i, 0);
    for (int64_t i = 0; op->config.need_dx && i < out; i++) {
        int64_t x0 = i / window.outs * window.ins, o = i % window.outs;
        double dy = ref_get(type, args->dy, i);

        if (op->config.kind == OP_MAXPOOL2D) {
            ref_pool_add(type, args->dx, x0 + winners[i], dy);
            continue;
        }
        dy /= ref_pool_divisor(op, &window, o);
        for (int64_t tap = 0; tap < window.taps; tap++) {
            int64_t at = ref_window_at(&window, o, tap);

            if (at >= 0)
                ref_pool_add(type, args->dx, x0 + at, dy);
        }
    }
    return ERR_OK;
}

const op_kernel_t ref_pool_kernel = {
    .open = ref_pool_open,
    .forward = ref_pool_forward,
    .backward = ref_pool_backward,
};
