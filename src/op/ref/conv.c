/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv: a cross-correlation. Tap k of output position s reads input position
 * at(s,k) (window.h; x is 0 outside). c are the channels in the group of o:
 *   y[n,o,s]  = b[o] + sum_{c,k} w[o,c,k] x[n,c,at(s,k)]
 *   dx[n,c,i] = sum_{o,s,k: at(s,k) = i} w[o,c,k] dy[n,o,s]
 *   dw[o,c,k] = sum_{n,s} dy[n,o,s] x[n,c,at(s,k)]
 *   db[o]     = sum_{n,s} dy[n,o,s]
 * dx is summed in scratch, double.
 */
#include <string.h>

#include "op/op_desc.h"
#include "op/ref/window.h"

typedef struct ref_conv {
    const op_t *op;
    op_type_t type;
    int64_t N, /* batch */
        C,     /* channels in */
        O,     /* channels out */
        CG,    /* channels in of a group */
        OG;    /* channels out of a group */
    ref_window_t window;
} ref_conv_t;

static ref_conv_t ref_conv_measure(const op_t *op)
{
    const op_conv_t *conv = &op->config.conv;
    const op_desc_t *in = &op->config.in;

    return (ref_conv_t){op,
                        in->type,
                        in->dims[0],
                        in->dims[1],
                        conv->out,
                        in->dims[1] / conv->groups,
                        conv->out / conv->groups,
                        ref_window_make(op, conv->kernel, conv->stride,
                                        conv->pad, conv->dilation)};
}

/* Index in x of position [at] of channel [c] in the group of output channel
 * [o]. The next two functions compute indices in y and w. */
static int64_t ref_conv_x_index(const ref_conv_t *s, int64_t n, int64_t o,
                                int64_t c, int64_t at)
{
    return (n * s->C + o / s->OG * s->CG + c) * s->window.ins + at;
}

static int64_t ref_conv_y_index(const ref_conv_t *s, int64_t n, int64_t o,
                                int64_t at)
{
    return (n * s->O + o) * s->window.outs + at;
}

static int64_t ref_conv_w_index(const ref_conv_t *s, int64_t o, int64_t c,
                                int64_t tap)
{
    return (o * s->CG + c) * s->window.taps + tap;
}

static err_code_t ref_conv_open(op_t *op, err_t *err)
{
    (void)err;
    if (op->config.training && op->config.need_dx)
        op->scratch_bytes =
            (size_t)op_desc_elems(&op->config.in) * sizeof(double);
    return ERR_OK;
}

/* The sum over channels and taps for y[n,o,at], without bias. */
static double ref_conv_sum_y(const ref_conv_t *s, const op_args_t *args,
                             int64_t n, int64_t o, int64_t at)
{
    double sum = 0;

    for (int64_t tap = 0; tap < s->window.taps; tap++) {
        int64_t i = ref_window_at(&s->window, at, tap);

        for (int64_t c = 0; i >= 0 && c < s->CG; c++)
            sum += ref_factor(s->op, args->params[0],
                              ref_conv_w_index(s, o, c, tap)) *
                   ref_factor(s->op, args->x, ref_conv_x_index(s, n, o, c, i));
    }
    return sum;
}

static err_code_t ref_conv_forward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_conv_t s = ref_conv_measure(op);

    (void)err;
    for (int64_t n = 0; n < s.N; n++)
        for (int64_t o = 0; o < s.O; o++)
            for (int64_t at = 0; at < s.window.outs; at++) {
                double y = ref_conv_sum_y(&s, args, n, o, at);

                if (op->config.bias)
                    y += ref_get(s.type, args->params[1], o);
                ref_put(s.type, args->y, ref_conv_y_index(&s, n, o, at), y);
            }
    return ERR_OK;
}

/* Add the contributions of dy[n,o,at] to the sums of dx, in scratch. */
static void ref_conv_add_dx(const ref_conv_t *s, const op_args_t *args,
                            int64_t n, int64_t o, int64_t at)
{
    double *sums = args->scratch;
    double dy = ref_factor(s->op, args->dy, ref_conv_y_index(s, n, o, at));

    for (int64_t tap = 0; tap < s->window.taps; tap++) {
        int64_t i = ref_window_at(&s->window, at, tap);

        for (int64_t c = 0; i >= 0 && c < s->CG; c++)
            sums[ref_conv_x_index(s, n, o, c, i)] +=
                dy * ref_factor(s->op, args->params[0],
                                ref_conv_w_index(s, o, c, tap));
    }
}

static void ref_conv_backward_data(const ref_conv_t *s, const op_args_t *args)
{
    int64_t elems = s->N * s->C * s->window.ins;
    double *sums = args->scratch;

    memset(sums, 0, (size_t)elems * sizeof *sums);
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t o = 0; o < s->O; o++)
            for (int64_t at = 0; at < s->window.outs; at++)
                ref_conv_add_dx(s, args, n, o, at);
    for (int64_t i = 0; i < elems; i++)
        ref_put(s->type, args->dx, i, sums[i]);
}

static double ref_conv_sum_dw(const ref_conv_t *s, const op_args_t *args,
                              int64_t o, int64_t c, int64_t tap)
{
    double sum = 0;

    for (int64_t n = 0; n < s->N; n++)
        for (int64_t at = 0; at < s->window.outs; at++) {
            int64_t i = ref_window_at(&s->window, at, tap);

            if (i >= 0)
                sum +=
                    ref_factor(s->op, args->dy, ref_conv_y_index(s, n, o, at)) *
                    ref_factor(s->op, args->x, ref_conv_x_index(s, n, o, c, i));
        }
    return sum;
}

static double ref_conv_sum_db(const ref_conv_t *s, const op_args_t *args,
                              int64_t o)
{
    double sum = 0;

    for (int64_t n = 0; n < s->N; n++)
        for (int64_t at = 0; at < s->window.outs; at++)
            sum += ref_factor(s->op, args->dy, ref_conv_y_index(s, n, o, at));
    return sum;
}

static err_code_t ref_conv_backward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_conv_t s = ref_conv_measure(op);

    (void)err;
    for (int64_t o = 0; o < s.O; o++)
        for (int64_t c = 0; c < s.CG; c++)
            for (int64_t tap = 0; tap < s.window.taps; tap++)
                ref_put(s.type, args->dparams[0],
                        ref_conv_w_index(&s, o, c, tap),
                        ref_conv_sum_dw(&s, args, o, c, tap));
    for (int64_t o = 0; op->config.bias && o < s.O; o++)
        ref_put(s.type, args->dparams[1], o, ref_conv_sum_db(&s, args, o));
    if (op->config.need_dx)
        ref_conv_backward_data(&s, args);
    return ERR_OK;
}

const op_kernel_t ref_conv_kernel = {
    .open = ref_conv_open,
    .forward = ref_conv_forward,
    .backward = ref_conv_backward,
};
