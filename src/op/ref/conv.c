/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv: a cross-correlation. Tap (kh,kw) of output pixel (oh,ow) looks at the
 * input pixel h = oh*stride - pad + kh*dilation (w alike; x is 0 outside). With
 * c running over the channels of the group of o:
 *   y[n,o,oh,ow]  = b[o] + sum_{c,kh,kw} w[o,c,kh,kw] x[n,c,h,w]
 *   dx[n,c,h,w]   = sum_{o,kh,kw} w[o,c,kh,kw] dy[n,o,oh,ow], over the output
 *                   pixels that look at (h,w)
 *   dw[o,c,kh,kw] = sum_{n,oh,ow} dy[n,o,oh,ow] x[n,c,h,w]
 *   db[o]         = sum_{n,oh,ow} dy[n,o,oh,ow]
 */
#include "op/ref/ref.h"

typedef struct ref_conv {
    op_type_t type;
    int64_t N, C, H, W;     /* input */
    int64_t O, OH, OW;      /* output */
    int64_t CG, OG;         /* channels of a group, in and out */
    int64_t KH, KW;         /* kernel */
    int64_t SH, SW, PH, PW; /* stride, pad */
    int64_t DH, DW;         /* dilation */
} ref_conv_t;

static ref_conv_t ref_conv_measure(const op_t *op)
{
    const int64_t *in = op->config.in.dims, *out = op->out.dims;
    const op_conv_t *conv = &op->config.conv;

    return (ref_conv_t){
        .type = op->config.in.type,
        .N = in[0],
        .C = in[1],
        .H = in[2],
        .W = in[3],
        .O = out[1],
        .OH = out[2],
        .OW = out[3],
        .CG = in[1] / conv->groups,
        .OG = out[1] / conv->groups,
        .KH = conv->kernel[0],
        .KW = conv->kernel[1],
        .SH = conv->stride[0],
        .SW = conv->stride[1],
        .PH = conv->pad[0],
        .PW = conv->pad[1],
        .DH = conv->dilation[0],
        .DW = conv->dilation[1],
    };
}

/* x[n,c,h,w], zero outside. */
static double ref_conv_x(const ref_conv_t *s, const void *x, int64_t n,
                         int64_t c, int64_t h, int64_t w)
{
    if (h < 0 || h >= s->H || w < 0 || w >= s->W)
        return 0;
    return ref_get(s->type, x, ((n * s->C + c) * s->H + h) * s->W + w);
}

static int64_t ref_conv_y_index(const ref_conv_t *s, int64_t n, int64_t o,
                                int64_t oh, int64_t ow)
{
    return ((n * s->O + o) * s->OH + oh) * s->OW + ow;
}

/* Index of w[o,c,kh,kw], c within the group. */
static int64_t ref_conv_w_index(const ref_conv_t *s, int64_t o, int64_t c,
                                int64_t kh, int64_t kw)
{
    return ((o * s->CG + c) * s->KH + kh) * s->KW + kw;
}

static double ref_conv_sum_y(const ref_conv_t *s, const op_args_t *args,
                             int64_t n, int64_t o, int64_t oh, int64_t ow)
{
    int64_t first = o / s->OG * s->CG; /* channel of the group */
    double sum = 0;

    for (int64_t c = 0; c < s->CG; c++)
        for (int64_t kh = 0; kh < s->KH; kh++)
            for (int64_t kw = 0; kw < s->KW; kw++)
                sum += ref_get(s->type, args->params[0],
                               ref_conv_w_index(s, o, c, kh, kw)) *
                       ref_conv_x(s, args->x, n, first + c,
                                  oh * s->SH - s->PH + kh * s->DH,
                                  ow * s->SW - s->PW + kw * s->DW);
    return sum;
}

static err_code_t ref_conv_forward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_conv_t s = ref_conv_measure(op);

    (void)err;
    for (int64_t n = 0; n < s.N; n++)
        for (int64_t o = 0; o < s.O; o++)
            for (int64_t oh = 0; oh < s.OH; oh++)
                for (int64_t ow = 0; ow < s.OW; ow++) {
                    double b = op->config.bias
                                   ? ref_get(s.type, args->params[1], o)
                                   : 0;

                    ref_put(s.type, args->y, ref_conv_y_index(&s, n, o, oh, ow),
                            b + ref_conv_sum_y(&s, args, n, o, oh, ow));
                }
    return ERR_OK;
}

/* The output row (or column) whose tap [k] looks at [at]; -1: none does. */
static int64_t ref_conv_output(int64_t at, int64_t k, int64_t stride,
                               int64_t pad, int64_t dilation, int64_t size)
{
    int64_t from = at + pad - k * dilation;

    if (from < 0 || from % stride != 0 || from / stride >= size)
        return -1;
    return from / stride;
}

static double ref_conv_sum_dx(const ref_conv_t *s, const op_args_t *args,
                              int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t group = c / s->CG;
    double sum = 0;

    for (int64_t o = group * s->OG; o < (group + 1) * s->OG; o++)
        for (int64_t kh = 0; kh < s->KH; kh++)
            for (int64_t kw = 0; kw < s->KW; kw++) {
                int64_t oh = ref_conv_output(h, kh, s->SH, s->PH, s->DH, s->OH);
                int64_t ow = ref_conv_output(w, kw, s->SW, s->PW, s->DW, s->OW);

                if (oh >= 0 && ow >= 0)
                    sum += ref_get(s->type, args->params[0],
                                   ref_conv_w_index(s, o, c % s->CG, kh, kw)) *
                           ref_get(s->type, args->dy,
                                   ref_conv_y_index(s, n, o, oh, ow));
            }
    return sum;
}

static void ref_conv_backward_data(const ref_conv_t *s, const op_args_t *args)
{
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t c = 0; c < s->C; c++)
            for (int64_t h = 0; h < s->H; h++)
                for (int64_t w = 0; w < s->W; w++)
                    ref_put(s->type, args->dx,
                            ((n * s->C + c) * s->H + h) * s->W + w,
                            ref_conv_sum_dx(s, args, n, c, h, w));
}

static double ref_conv_sum_dw(const ref_conv_t *s, const op_args_t *args,
                              int64_t o, int64_t c, int64_t kh, int64_t kw)
{
    int64_t first = o / s->OG * s->CG;
    double sum = 0;

    for (int64_t n = 0; n < s->N; n++)
        for (int64_t oh = 0; oh < s->OH; oh++)
            for (int64_t ow = 0; ow < s->OW; ow++)
                sum += ref_get(s->type, args->dy,
                               ref_conv_y_index(s, n, o, oh, ow)) *
                       ref_conv_x(s, args->x, n, first + c,
                                  oh * s->SH - s->PH + kh * s->DH,
                                  ow * s->SW - s->PW + kw * s->DW);
    return sum;
}

static double ref_conv_sum_db(const ref_conv_t *s, const op_args_t *args,
                              int64_t o)
{
    double sum = 0;

    for (int64_t n = 0; n < s->N; n++)
        for (int64_t i = 0; i < s->OH * s->OW; i++)
            sum +=
                ref_get(s->type, args->dy, (n * s->O + o) * s->OH * s->OW + i);
    return sum;
}

static err_code_t ref_conv_backward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_conv_t s = ref_conv_measure(op);

    (void)err;
    for (int64_t o = 0; o < s.O; o++) {
        for (int64_t c = 0; c < s.CG; c++)
            for (int64_t kh = 0; kh < s.KH; kh++)
                for (int64_t kw = 0; kw < s.KW; kw++)
                    ref_put(s.type, args->dparams[0],
                            ref_conv_w_index(&s, o, c, kh, kw),
                            ref_conv_sum_dw(&s, args, o, c, kh, kw));
        if (op->config.bias)
            ref_put(s.type, args->dparams[1], o, ref_conv_sum_db(&s, args, o));
    }
    if (op->config.need_dx)
        ref_conv_backward_data(&s, args);
    return ERR_OK;
}

const op_kernel_t ref_conv_kernel = {
    .forward = ref_conv_forward,
    .backward = ref_conv_backward,
};
