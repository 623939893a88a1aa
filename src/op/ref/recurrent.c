/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lstm (Hochreiter and Schmidhuber, 1997, with forget gates) and gru (Cho et
 * al., 2014), with PyTorch's gates. For each sample, h and c are 0 before the
 * first step. With a = w_ih x[t] + b_ih and u = w_hh h + b_hh:
 *   lstm, gates i f g o: i, f, o = sigmoid(a + u), g = tanh(a + u),
 *                        c' = f c + i g, h' = o tanh(c')
 *   gru, gates r z n:    r, z = sigmoid(a + u), n = tanh(a + r u),
 *                        h' = (1 - z) n + z h
 * The workspace keeps for each sample and step the gates, h and c (gru: u of n
 * instead of c), and the h and c before the first step, all in double. scratch
 * has the sums of dw and db, and the gradients of one step.
 */
#include <math.h>
#include <string.h>

#include "op/op_geometry.h"
#include "op/ref/ref.h"

typedef struct ref_recurrent {
    const op_t *op;
    op_type_t type;
    bool lstm, bias, reverse, last;
    int64_t n;              /* the sample */
    int64_t T,              /* tokens */
        F,                  /* features in */
        H,                  /* features out */
        G;                  /* H times the number of gates */
    double *gates, *h, *c;  /* of one sample: [T,G], [T+1,H], [T+1,H] */
    double *dwi, *dwh, *db; /* [G,F], [G,H], b_ih [G] and b_hh [G] */
    double *dh, *dc;        /* [H] */
    double *da, *du;        /* [G] */
} ref_recurrent_t;

static int64_t ref_recurrent_kept(const op_t *op)
{
    const int64_t T = op->config.in.dims[1], H = op->config.out;

    return T * op_recurrent_gates(&op->config) * H + 2 * (T + 1) * H;
}

static err_code_t ref_recurrent_open(op_t *op, err_t *err)
{
    const int64_t F = op->config.in.dims[2], H = op->config.out;
    const int64_t G = op_recurrent_gates(&op->config) * H;

    (void)err;
    op->workspace_bytes =
        (size_t)(op->config.in.dims[0] * ref_recurrent_kept(op)) *
        sizeof(double);
    op->scratch_bytes =
        (size_t)(G * F + G * H + 4 * G + 2 * H) * sizeof(double);
    return ERR_OK;
}

static ref_recurrent_t ref_recurrent_of(const op_t *op, const op_args_t *args,
                                        int64_t n)
{
    ref_recurrent_t r = {.op = op,
                         .type = op->config.in.type,
                         .lstm = op->config.kind == OP_LSTM,
                         .bias = op->config.bias,
                         .reverse = op->config.recurrent.reverse,
                         .last = op->config.recurrent.last,
                         .n = n,
                         .T = op->config.in.dims[1],
                         .F = op->config.in.dims[2],
                         .H = op->config.out};

    r.G = op_recurrent_gates(&op->config) * r.H;
    r.gates = (double *)args->workspace + n * ref_recurrent_kept(op);
    r.h = r.gates + r.T * r.G;
    r.c = r.h + (r.T + 1) * r.H;
    r.dwi = args->scratch;
    r.dwh = r.dwi + r.G * r.F;
    r.db = r.dwh + r.G * r.H;
    r.dh = r.db + 2 * r.G;
    r.dc = r.dh + r.H;
    r.da = r.dc + r.H;
    r.du = r.da + r.G;
    return r;
}

/* The token of step [s]. */
static int64_t ref_recurrent_token(const ref_recurrent_t *r, int64_t s)
{
    return r->reverse ? r->T - 1 - s : s;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Element [g] of a ([which] 0) or u ([which] 1) in step [s]. */
static double ref_recurrent_sum(const ref_recurrent_t *r, const op_args_t *args,
                                int which, int64_t g, int64_t s)
{
    const int64_t size = which == 0 ? r->F : r->H;
    const int64_t at = (r->n * r->T + ref_recurrent_token(r, s)) * r->F;
    double sum = r->bias ? ref_get(r->type, args->params[2 + which], g) : 0;

    for (int64_t k = 0; k < size; k++)
        sum += ref_factor(r->op, args->params[which], g * size + k) *
               (which == 0 ? ref_factor(r->op, args->x, at + k)
                           : ref_round(r->op, r->h[s * r->H + k]));
    return sum;
}

/* Compute feature [k] of step [s]: the gates, and the next h and c. */
static void ref_recurrent_step(const ref_recurrent_t *r, const op_args_t *args,
                               int64_t s, int64_t k)
{
    double *gate = r->gates + s * r->G + k, a[4] = {0}, u[4] = {0};
    const int64_t H = r->H, now = s * H + k, next = now + H;

    for (int64_t g = 0; g < r->G / H; g++) {
        a[g] = ref_recurrent_sum(r, args, 0, g * H + k, s);
        u[g] = ref_recurrent_sum(r, args, 1, g * H + k, s);
    }
    gate[0] = sigmoid(a[0] + u[0]);
    gate[H] = sigmoid(a[1] + u[1]);
    if (r->lstm) {
        gate[2 * H] = tanh(a[2] + u[2]);
        gate[3 * H] = sigmoid(a[3] + u[3]);
        r->c[next] = gate[H] * r->c[now] + gate[0] * gate[2 * H];
        r->h[next] = gate[3 * H] * tanh(r->c[next]);
    } else {
        gate[2 * H] = tanh(a[2] + gate[0] * u[2]);
        r->c[now] = u[2];
        r->h[next] = (1 - gate[H]) * gate[2 * H] + gate[H] * r->h[now];
    }
}

/* Index in y of feature 0 of the output of step [s]; -1: it is not in y. */
static int64_t ref_recurrent_y(const ref_recurrent_t *r, int64_t s)
{
    if (r->last)
        return s == r->T - 1 ? r->n * r->H : -1;
    return (r->n * r->T + ref_recurrent_token(r, s)) * r->H;
}

static err_code_t ref_recurrent_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    (void)err;
    for (int64_t n = 0; n < op->config.in.dims[0]; n++) {
        ref_recurrent_t r = ref_recurrent_of(op, args, n);

        memset(r.h, 0, (size_t)r.H * sizeof *r.h);
        memset(r.c, 0, (size_t)r.H * sizeof *r.c);
        for (int64_t s = 0; s < r.T; s++) {
            int64_t y = ref_recurrent_y(&r, s);

            for (int64_t k = 0; k < r.H; k++)
                ref_recurrent_step(&r, args, s, k);
            for (int64_t k = 0; k < r.H && y >= 0; k++)
                ref_put(r.type, args->y, y + k, r.h[(s + 1) * r.H + k]);
        }
    }
    return ERR_OK;
}

/* Compute da and du of feature [k] of step [s]. Replace dh and dc by their
 * direct contributions to the step before, that is without those through
 * w_hh. */
static void ref_recurrent_slope(const ref_recurrent_t *r, int64_t s, int64_t k)
{
    const double *gate = r->gates + s * r->G + k;
    const int64_t H = r->H, now = s * H + k;
    double *da = r->da + k, *du = r->du + k, dh = r->dh[k];

    if (r->lstm) {
        double i = gate[0], f = gate[H], g = gate[2 * H], o = gate[3 * H];
        double tanh_c = tanh(r->c[now + H]);
        double dc = r->dc[k] + dh * o * (1 - tanh_c * tanh_c);

        da[0] = dc * g * i * (1 - i);
        da[H] = dc * r->c[now] * f * (1 - f);
        da[2 * H] = dc * i * (1 - g * g);
        da[3 * H] = dh * tanh_c * o * (1 - o);
        r->dc[k] = dc * f;
        r->dh[k] = 0;
        for (int64_t at = 0; at < r->G; at += H)
            du[at] = da[at];
    } else {
        double reset = gate[0], z = gate[H], new = gate[2 * H];

        da[2 * H] = dh * (1 - z) * (1 - new *new);
        da[H] = dh * (r->h[now] - new) * z * (1 - z);
        da[0] = da[2 * H] * r->c[now] * reset * (1 - reset);
        du[0] = da[0];
        du[H] = da[H];
        du[2 * H] = da[2 * H] * reset;
        r->dh[k] = dh * z;
    }
}

/* Add the contributions of da and du of step [s] to dw, db and dh, and write
 * dx. */
static void ref_recurrent_add(const ref_recurrent_t *r, const op_args_t *args,
                              int64_t s)
{
    const op_t *op = r->op;
    const int64_t at = (r->n * r->T + ref_recurrent_token(r, s)) * r->F;

    for (int64_t f = 0; f < r->F; f++) {
        double dx = 0;

        for (int64_t g = 0; g < r->G; g++) {
            const double da = ref_round(op, r->da[g]);

            r->dwi[g * r->F + f] += da * ref_factor(op, args->x, at + f);
            dx += da * ref_factor(op, args->params[0], g * r->F + f);
        }
        if (op->config.need_dx)
            ref_put(r->type, args->dx, at + f, dx);
    }
    for (int64_t g = 0; g < r->G; g++) {
        const double du = ref_round(op, r->du[g]);

        r->db[g] += r->da[g];
        r->db[r->G + g] += r->du[g];
        for (int64_t k = 0; k < r->H; k++) {
            r->dwh[g * r->H + k] += du * ref_round(op, r->h[s * r->H + k]);
            r->dh[k] += du * ref_factor(op, args->params[1], g * r->H + k);
        }
    }
}

static void ref_recurrent_store(const ref_recurrent_t *r, void *to,
                                const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ref_put(r->type, to, i, from[i]);
}

static err_code_t ref_recurrent_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    ref_recurrent_t r = ref_recurrent_of(op, args, 0);

    (void)err;
    memset(args->scratch, 0, op->scratch_bytes);
    for (int64_t n = 0; n < op->config.in.dims[0]; n++) {
        r = ref_recurrent_of(op, args, n);
        memset(r.dh, 0, (size_t)(2 * r.H) * sizeof *r.dh);
        for (int64_t s = r.T - 1; s >= 0; s--) {
            int64_t y = ref_recurrent_y(&r, s);

            for (int64_t k = 0; k < r.H; k++) {
                r.dh[k] += y < 0 ? 0 : ref_get(r.type, args->dy, y + k);
                ref_recurrent_slope(&r, s, k);
            }
            ref_recurrent_add(&r, args, s);
        }
    }
    ref_recurrent_store(&r, args->dparams[0], r.dwi, r.G * r.F);
    ref_recurrent_store(&r, args->dparams[1], r.dwh, r.G * r.H);
    for (int which = 0; which < 2 && r.bias; which++)
        ref_recurrent_store(&r, args->dparams[2 + which], r.db + which * r.G,
                            r.G);
    return ERR_OK;
}

const op_kernel_t ref_recurrent_kernel = {
    .open = ref_recurrent_open,
    .forward = ref_recurrent_forward,
    .backward = ref_recurrent_backward,
};
