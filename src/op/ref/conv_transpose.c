/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv_transpose: its forward is the gradient of a conv that has y as input and
 * x as output. Position o of x and tap k are mapped to position s(o,k) =
 * o*stride - pad + k*dilation of y. w is [C, O/groups, ...]:
 *   y[n,o',s]  = b[o'] + sum over c, o, k with s(o,k) = s of x[n,c,o] w[c,o',k]
 *   dx[n,c,o]  = sum over o', k of dy[n,o',s(o,k)] w[c,o',k]
 *   dw[c,o',k] = sum over n, o of x[n,c,o] dy[n,o',s(o,k)],  db = sum of dy
 */
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/ref/window.h"

typedef struct ref_transpose {
    ref_window_t window; /* of the conv from y (window.in) to x (window.out) */
    op_type_t type;
    int64_t N,       /* batch */
        C,           /* channels of x */
        O;           /* channels of y */
    int64_t group_c, /* channels of x in a group */
        group_o;     /* channels of y in a group */
} ref_transpose_t;

static ref_transpose_t ref_transpose_of(const op_t *op)
{
    const op_conv_t *conv = &op->config.conv;
    const op_desc_t *in = &op->config.in;

    return (ref_transpose_t){.window = {.space = in->ndim - 2,
                                        .in = &op->out.dims[2],
                                        .out = &in->dims[2],
                                        .kernel = conv->kernel,
                                        .stride = conv->stride,
                                        .pad = conv->pad,
                                        .dilation = conv->dilation,
                                        .ins = op_desc_space(&op->out),
                                        .outs = op_desc_space(in),
                                        .taps = op_window_taps(&op->config)},
                             .type = in->type,
                             .N = in->dims[0],
                             .C = in->dims[1],
                             .O = conv->out,
                             .group_c = in->dims[1] / conv->groups,
                             .group_o = conv->out / conv->groups};
}

static double ref_transpose_w(const ref_transpose_t *t, const void *w,
                              int64_t c, int64_t o, int64_t tap)
{
    int64_t at = (c * t->group_o + o % t->group_o) * t->window.taps + tap;

    return ref_get(t->type, w, at);
}

/* The position of x that [tap] maps to position [s] of y; -1: there is none. */
static int64_t ref_transpose_back(const ref_window_t *w, int64_t s, int64_t tap)
{
    int64_t at = 0, scale = 1;

    for (int i = w->space - 1; i >= 0; i--) {
        int64_t far =
            s % w->in[i] + w->pad[i] - tap % w->kernel[i] * w->dilation[i];

        if (far < 0 || far % w->stride[i] != 0 ||
            far / w->stride[i] >= w->out[i])
            return -1;
        at += far / w->stride[i] * scale;
        scale *= w->out[i];
        s /= w->in[i];
        tap /= w->kernel[i];
    }
    return at;
}

static err_code_t ref_transpose_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    ref_transpose_t t = ref_transpose_of(op);

    (void)err;
    for (int64_t i = 0; i < t.N * t.O * t.window.ins; i++) {
        int64_t s = i % t.window.ins, o = i / t.window.ins % t.O;
        int64_t n = i / (t.window.ins * t.O), first = o / t.group_o * t.group_c;
        double sum = op->config.bias ? ref_get(t.type, args->params[1], o) : 0;

        for (int64_t tap = 0; tap < t.window.taps; tap++) {
            int64_t at = ref_transpose_back(&t.window, s, tap);

            for (int64_t c = first; at >= 0 && c < first + t.group_c; c++)
                sum += ref_get(t.type, args->x,
                               (n * t.C + c) * t.window.outs + at) *
                       ref_transpose_w(&t, args->params[0], c, o, tap);
        }
        ref_put(t.type, args->y, i, sum);
    }
    return ERR_OK;
}

static void ref_transpose_dx(const ref_transpose_t *t, const op_args_t *args)
{
    for (int64_t i = 0; i < t->N * t->C * t->window.outs; i++) {
        int64_t at = i % t->window.outs, c = i / t->window.outs % t->C;
        int64_t n = i / (t->window.outs * t->C);
        int64_t first = c / t->group_c * t->group_o;
        double sum = 0;

        for (int64_t tap = 0; tap < t->window.taps; tap++) {
            int64_t s = ref_window_at(&t->window, at, tap);

            for (int64_t o = first; s >= 0 && o < first + t->group_o; o++)
                sum += ref_get(t->type, args->dy,
                               (n * t->O + o) * t->window.ins + s) *
                       ref_transpose_w(t, args->params[0], c, o, tap);
        }
        ref_put(t->type, args->dx, i, sum);
    }
}

static void ref_transpose_dw(const ref_transpose_t *t, const op_args_t *args)
{
    for (int64_t i = 0; i < t->C * t->group_o * t->window.taps; i++) {
        int64_t tap = i % t->window.taps, c = i / t->window.taps / t->group_o;
        int64_t o =
            i / t->window.taps % t->group_o + c / t->group_c * t->group_o;
        double sum = 0;

        for (int64_t k = 0; k < t->N * t->window.outs; k++) {
            int64_t n = k / t->window.outs, at = k % t->window.outs;
            int64_t s = ref_window_at(&t->window, at, tap);

            if (s >= 0)
                sum += ref_get(t->type, args->x,
                               (n * t->C + c) * t->window.outs + at) *
                       ref_get(t->type, args->dy,
                               (n * t->O + o) * t->window.ins + s);
        }
        ref_put(t->type, args->dparams[0], i, sum);
    }
}

static err_code_t ref_transpose_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    ref_transpose_t t = ref_transpose_of(op);

    (void)err;
    ref_transpose_dw(&t, args);
    for (int64_t o = 0; o < t.O && op->config.bias; o++) {
        double sum = 0;

        for (int64_t k = 0; k < t.N * t.window.ins; k++)
            sum += ref_get(t.type, args->dy,
                           (k / t.window.ins * t.O + o) * t.window.ins +
                               k % t.window.ins);
        ref_put(t.type, args->dparams[1], o, sum);
    }
    if (op->config.need_dx)
        ref_transpose_dx(&t, args);
    return ERR_OK;
}

const op_kernel_t ref_conv_transpose_kernel = {
    .forward = ref_transpose_forward,
    .backward = ref_transpose_backward,
};
