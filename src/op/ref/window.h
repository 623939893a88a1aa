/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A window over 1 to 3 spatial dimensions. Spatial positions (of x, of y) and
 * the taps of the window are numbered in row-major order. Tap k of output
 * position o reads position o*stride - pad + k*dilation along each dimension.
 */
#ifndef CDDP_OP_REF_WINDOW_H
#define CDDP_OP_REF_WINDOW_H

#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/ref/ref.h"

typedef struct ref_window {
    int space; /* number of spatial dimensions */
    const int64_t *in, *out, *kernel, *stride, *pad;
    const int64_t *dilation; /* NULL: 1 */
    int64_t ins, outs, taps; /* products of in, of out and of kernel */
} ref_window_t;

static inline ref_window_t
ref_window_make(const op_t *op, const int64_t *kernel, const int64_t *stride,
                const int64_t *pad, const int64_t *dilation)
{
    return (ref_window_t){op->config.in.ndim - 2,
                          &op->config.in.dims[2],
                          &op->out.dims[2],
                          kernel,
                          stride,
                          pad,
                          dilation,
                          op_desc_space(&op->config.in),
                          op_desc_space(&op->out),
                          op_window_taps(&op->config)};
}

/* Spatial index in x that tap [tap] of output position [o] reads; -1: outside
 * of x. */
static inline int64_t ref_window_at(const ref_window_t *window, int64_t o,
                                    int64_t tap)
{
    int64_t at = 0, scale = 1;

    for (int i = window->space - 1; i >= 0; i--) {
        int64_t step = window->dilation == NULL ? 1 : window->dilation[i];
        int64_t x = o % window->out[i] * window->stride[i] - window->pad[i] +
                    tap % window->kernel[i] * step;

        if (x < 0 || x >= window->in[i])
            return -1;
        at += x * scale;
        scale *= window->in[i];
        o /= window->out[i];
        tap /= window->kernel[i];
    }
    return at;
}

#endif
