/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention, for each sample and head h with key and value head g = h / (H/G).
 * i is a token of q, j a token of k and v (causal: only j <= i):
 *   s[i,j] = sum_d q[i,d] k[j,d] / sqrt(D),  p[i,:] = softmax s[i,:]
 *   y[i,d] = sum_j p[i,j] v[j,d]
 *   dp[i,j] = sum_d dy[i,d] v[j,d]
 *   ds[i,j] = p[i,j] (dp[i,j] - sum_k p[i,k] dp[i,k]) / sqrt(D)
 *   dq[i,d] = sum_j ds[i,j] k[j,d]
 *   dk[j,d] = sum_{h of g, i} ds[i,j] q[i,d],  dv[j,d] = sum p[i,j] dy[i,d]
 * scratch has p and ds of one head, and dk and dv of one key and value head, in
 * double. If the op computes in bfloat16 or tf32, the factors of all these sums
 * are rounded, except those of p dp. In tf32, which only GPUs compute, the p of
 * y is not rounded either: the kernel divides by the sum of a row after the
 * product, so it never has this p before y, and delta = sum_d dy[i,d] y[i,d]
 * must be sum_k p[i,k] dp[i,k]. With a mask, p is 0 for invalid keys. If a
 * query has no valid key, its p is 0 for all keys.
 */
#include <math.h>
#include <string.h>

#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/ref/ref.h"

enum { Q, K, V };

typedef struct ref_attention {
    const op_t *op;
    op_type_t type;
    op_attention_t a;
    bool causal;
    const void *in[3];
    void *gradient[3];
    double *p, *ds;  /* [T,S] */
    double *sums[3]; /* sums of dk and dv, at K and V: [S,D] */
    float *valid;    /* [N,S]: 1 for valid keys, 0 for others; NULL: no mask */
} ref_attention_t;

static err_code_t ref_attention_open(op_t *op, err_t *err)
{
    op_attention_t a = op_attention_of(&op->config);

    (void)err;
    op->scratch_bytes =
        (size_t)(2 * a.T * a.S + 2 * a.S * a.D) * sizeof(double) +
        (op->config.heads.masked ? (size_t)(a.N * a.S) * sizeof(float) : 0);
    return ERR_OK;
}

static ref_attention_t ref_attention_make(const op_t *op, const op_args_t *args)
{
    ref_attention_t s = {.op = op,
                         .type = op->config.in.type,
                         .a = op_attention_of(&op->config),
                         .causal = op->config.heads.causal,
                         .p = args->scratch};

    s.ds = s.p + s.a.T * s.a.S;
    s.sums[K] = s.ds + s.a.T * s.a.S;
    s.sums[V] = s.sums[K] + s.a.S * s.a.D;
    if (op->config.heads.masked)
        s.valid = (float *)(s.sums[V] + s.a.S * s.a.D);
    for (int i = 0; i < 3; i++) {
        int from = s.a.input[i];

        s.in[i] = from == 0 ? args->x : args->other[from - 1];
        s.gradient[i] = from == 0 ? args->dx : args->dother[from - 1];
        if (from == 0 && !op->config.need_dx)
            s.gradient[i] = NULL;
    }
    return s;
}

/* Read the mask, if there is one, into valid. */
static err_code_t ref_attention_mask(const ref_attention_t *s,
                                     const op_args_t *args, err_t *err)
{
    return s->valid == NULL
               ? ERR_OK
               : op_attention_valid_keys(&s->op->config,
                                         args->other[s->op->config.others - 1],
                                         s->valid, err);
}

/* Index of feature 0 of token [t] of head [h] in q, k or v. */
static int64_t ref_attention_at(const ref_attention_t *s, int which, int64_t n,
                                int64_t t, int64_t h)
{
    int64_t tokens = which == Q ? s->a.T : s->a.S;

    return s->a.base[which] + (n * tokens + t) * s->a.stride[which] +
           h * s->a.D;
}

/* Element [at] of q, k or v, as a factor. */
static double ref_attention_get(const ref_attention_t *s, int which, int64_t at)
{
    return ref_factor(s->op, s->in[which], at);
}

/* Index of feature [d] of token [t] of head [h] in y. */
static int64_t ref_attention_y(const ref_attention_t *s, int64_t n, int64_t t,
                               int64_t h, int64_t d)
{
    return ((n * s->a.T + t) * s->a.H + h) * s->a.D + d;
}

/* Does query [i] of sample [n] read key [j]? */
static bool ref_attention_reads(const ref_attention_t *s, int64_t n, int64_t i,
                                int64_t j)
{
    return (!s->causal || j <= i) &&
           (s->valid == NULL || s->valid[n * s->a.S + j] != 0);
}

/* Compute p of sample [n] and head [h]. p is 0 for keys that a query does not
 * read. */
static void ref_attention_softmax(const ref_attention_t *s, int64_t n,
                                  int64_t h)
{
    int64_t g = h / (s->a.H / s->a.G);

    for (int64_t i = 0; i < s->a.T; i++) {
        double *p = s->p + i * s->a.S, top = -INFINITY, sum = 0;

        memset(p, 0, (size_t)s->a.S * sizeof *p);
        for (int64_t j = 0; j < s->a.S; j++) {
            if (!ref_attention_reads(s, n, i, j))
                continue;
            for (int64_t d = 0; d < s->a.D; d++)
                p[j] += ref_attention_get(s, Q,
                                          ref_attention_at(s, Q, n, i, h) + d) *
                        ref_attention_get(s, K,
                                          ref_attention_at(s, K, n, j, g) + d);
            p[j] /= sqrt((double)s->a.D);
            top = p[j] > top ? p[j] : top;
        }
        for (int64_t j = 0; j < s->a.S; j++) {
            p[j] = ref_attention_reads(s, n, i, j) ? exp(p[j] - top) : 0;
            sum += p[j];
        }
        for (int64_t j = 0; j < s->a.S && sum != 0; j++)
            p[j] /= sum;
    }
}

/* Element [at] of p as a factor of y. */
static double ref_attention_p(const ref_attention_t *s, int64_t at)
{
    return s->op->config.compute_type == OP_TF32 ? s->p[at]
                                                 : ref_round(s->op, s->p[at]);
}

static err_code_t ref_attention_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    ref_attention_t s = ref_attention_make(op, args);
    op_attention_t *a = &s.a;
    err_code_t rc = ref_attention_mask(&s, args, err);

    for (int64_t nh = 0; nh < a->N * a->H && rc == ERR_OK; nh++) {
        int64_t n = nh / a->H, h = nh % a->H, g = h / (a->H / a->G);

        ref_attention_softmax(&s, n, h);
        for (int64_t id = 0; id < a->T * a->D; id++) {
            int64_t i = id / a->D, d = id % a->D;
            double y = 0;

            for (int64_t j = 0; j < a->S; j++)
                y += ref_attention_p(&s, i * a->S + j) *
                     ref_attention_get(&s, V,
                                       ref_attention_at(&s, V, n, j, g) + d);
            ref_put(s.type, args->y, ref_attention_y(&s, n, i, h, d), y);
        }
    }
    return rc;
}

/* Compute ds of sample [n] and head [h], whose p is computed already. */
static void ref_attention_slope(const ref_attention_t *s, const op_args_t *args,
                                int64_t n, int64_t h)
{
    int64_t g = h / (s->a.H / s->a.G), S = s->a.S;

    for (int64_t i = 0; i < s->a.T; i++) {
        double *ds = s->ds + i * S, *p = s->p + i * S, mean = 0;

        for (int64_t j = 0; j < S; j++) {
            ds[j] = 0;
            for (int64_t d = 0; d < s->a.D; d++)
                ds[j] += ref_factor(s->op, args->dy,
                                    ref_attention_y(s, n, i, h, d)) *
                         ref_attention_get(s, V,
                                           ref_attention_at(s, V, n, j, g) + d);
            mean += p[j] * ds[j];
        }
        for (int64_t j = 0; j < S; j++)
            ds[j] = p[j] * (ds[j] - mean) / sqrt((double)s->a.D);
    }
}

/* Compute dq of head [h], and add the head's part of dk and dv to the sums. */
static void ref_attention_add(const ref_attention_t *s, const op_args_t *args,
                              int64_t n, int64_t h)
{
    int64_t g = h / (s->a.H / s->a.G), S = s->a.S, D = s->a.D;

    for (int64_t id = 0; id < s->a.T * D; id++) {
        int64_t i = id / D, d = id % D;
        double q = ref_attention_get(s, Q, ref_attention_at(s, Q, n, i, h) + d),
               dq = 0;
        double dy = ref_factor(s->op, args->dy, ref_attention_y(s, n, i, h, d));

        for (int64_t j = 0; j < S; j++) {
            double p = ref_round(s->op, s->p[i * S + j]);
            double ds = ref_round(s->op, s->ds[i * S + j]);

            dq += ds *
                  ref_attention_get(s, K, ref_attention_at(s, K, n, j, g) + d);
            s->sums[K][j * D + d] += ds * q;
            s->sums[V][j * D + d] += p * dy;
        }
        if (s->gradient[Q] != NULL)
            ref_put(s->type, s->gradient[Q],
                    ref_attention_at(s, Q, n, i, h) + d, dq);
    }
}

/* The gradient of the mask is 0. */
static void ref_attention_clear_mask(const op_t *op, const op_args_t *args)
{
    const int last = op->config.others - 1;

    if (!op->config.heads.masked || args->dother[last] == NULL)
        return;
    for (int64_t i = 0; i < op_desc_elems(&op->config.other[last]); i++)
        ref_put(op->config.in.type, args->dother[last], i, 0);
}

static err_code_t ref_attention_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    ref_attention_t s = ref_attention_make(op, args);
    op_attention_t *a = &s.a;
    err_code_t rc = ref_attention_mask(&s, args, err);

    ref_attention_clear_mask(op, args);
    for (int64_t ng = 0; ng < a->N * a->G && rc == ERR_OK; ng++) {
        int64_t n = ng / a->G, g = ng % a->G, heads = a->H / a->G;

        memset(s.sums[K], 0, (size_t)(2 * a->S * a->D) * sizeof(double));
        for (int64_t h = g * heads; h < (g + 1) * heads; h++) {
            ref_attention_softmax(&s, n, h);
            ref_attention_slope(&s, args, n, h);
            ref_attention_add(&s, args, n, h);
        }
        for (int which = K; which <= V; which++)
            for (int64_t jd = 0; s.gradient[which] != NULL && jd < a->S * a->D;
                 jd++)
                ref_put(s.type, s.gradient[which],
                        ref_attention_at(&s, which, n, jd / a->D, g) +
                            jd % a->D,
                        s.sums[which][jd]);
    }
    return rc;
}

const op_kernel_t ref_attention_kernel = {
    .open = ref_attention_open,
    .forward = ref_attention_forward,
    .backward = ref_attention_backward,
};
