/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * adam (Kingma and Ba, 2015) as torch.optim.Adam, with weight decay in the
 * gradient, and adamw (Loshchilov and Hutter, 2019) as torch.optim.AdamW, with
 * decoupled weight decay. Scalars are computed in float64, once per update.
 */
#include <math.h>

#include "optim/optim_priv.h"
#include "simd/math.h"
#include "simd/vector.h"

typedef struct adam_options {
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad;
} adam_options_t;

_Static_assert(sizeof(adam_options_t) <= OPTIM_OPTIONS_MAX, "options");

/* eps must be positive: the gaps between parameters, which are all zero, would
 * become 0/0. */
#define ADAM_ROWS(decay, decay_help)                                         \
    OPTIM_LR(adam_options_t, "1e-3"),                                        \
        OPTIM_REAL(adam_options_t, beta1, "0.9", 0, 0.999999,                \
                   "Decay of the running mean of gradients"),                \
        OPTIM_REAL(adam_options_t, beta2, "0.999", 0, 0.999999,              \
                   "Decay of the running mean of squared gradients"),        \
        OPTIM_REAL(adam_options_t, eps, "1e-8", 1e-30, 1,                    \
                   "Added to the denominator"),                              \
        OPTIM_REAL(adam_options_t, weight_decay, decay, 0, 1e6, decay_help), \
        {.name = "amsgrad",                                                  \
         .type = OPT_BOOL,                                                   \
         .offset = offsetof(adam_options_t, amsgrad),                        \
         .fallback = "false",                                                \
         .help = "true: divide by the largest mean of squared gradients so " \
                 "far (Reddi et al., 2018), which is stored as one more "    \
                 "tensor per parameter"},                                    \
    {                                                                        \
        .name = NULL                                                         \
    }

static const opt_row_t adam_rows[] = {
    ADAM_ROWS("0", "This times the parameter is added to the gradient")};
static const opt_row_t adamw_rows[] = {
    ADAM_ROWS("0.01", "In each update, this times the learning rate times the "
                      "parameter is subtracted from the parameter")};

enum { MEAN, SQUARE, MOST };

static unsigned adam_slots(const void *options)
{
    const adam_options_t *adam = options;

    return 1U << MEAN | 1U << SQUARE | (adam->amsgrad ? 1U << MOST : 0);
}

/* The scalars of one update. */
typedef struct adam_scalars {
    float add;  /* added to the gradient: weight decay that is not decoupled */
    float keep; /* factor of the weights: 1 - lr * weight_decay if decoupled */
    float beta2;
    float new1, new2; /* 1 - beta1, 1 - beta2 */
    float rate;       /* lr / (1 - beta1^number) */
    float root;       /* 1 / sqrt(1 - beta2^number) */
    float eps;
} adam_scalars_t;

/* Elements of a cache line, and how many elements ahead to prefetch. (The
 * processor's own prefetching stops at the end of a small page.) */
#define ADAM_LINE 16
#define ADAM_AHEAD 256

SIMD_INLINE void adam_element(float *p, float grad, float *mean, float *square,
                              const adam_scalars_t *s)
{
    float g = grad + s->add * *p;
    float m = *mean + s->new1 * (g - *mean);
    float v = s->beta2 * *square + s->new2 * g * g;

    *mean = m;
    *square = v;
    *p = s->keep * *p - s->rate * m / (sqrtf(v) * s->root + s->eps);
}

SIMD_CLONES static void adam_loop(float *restrict p,
                                  const float *restrict grads,
                                  float *restrict mean, float *restrict square,
                                  size_t elems, adam_scalars_t s)
{
    size_t i = 0;

    for (; i + ADAM_LINE <= elems; i += ADAM_LINE) {
        __builtin_prefetch(p + i + ADAM_AHEAD, 1);
        __builtin_prefetch(grads + i + ADAM_AHEAD);
        __builtin_prefetch(mean + i + ADAM_AHEAD, 1);
        __builtin_prefetch(square + i + ADAM_AHEAD, 1);
        SIMD_INDEPENDENT
        for (size_t j = i; j < i + ADAM_LINE; j++)
            adam_element(p + j, grads[j], mean + j, square + j, &s);
    }
    for (; i < elems; i++)
        adam_element(p + i, grads[i], mean + i, square + i, &s);
}

/* amsgrad: uses the largest mean of squares so far. NaN stays NaN. */
SIMD_CLONES static void
adam_loop_most(float *restrict p, const float *restrict grads,
               float *restrict mean, float *restrict square,
               float *restrict most, size_t elems, adam_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.add * p[i];
        float m = mean[i] + s.new1 * (g - mean[i]);
        float v = s.beta2 * square[i] + s.new2 * g * g;
        float top = v <= most[i] ? most[i] : v;

        mean[i] = m;
        square[i] = v;
        most[i] = top;
        p[i] = s.keep * p[i] - s.rate * m / (sqrtf(top) * s.root + s.eps);
    }
}

static void adam_run(const optim_update_t *update, double add, double apart)
{
    const adam_options_t *adam = update->options;
    const double number = (double)update->number;
    const adam_scalars_t scalars = {
        .add = (float)add,
        .keep = (float)(1 - update->lr * apart),
        .beta2 = (float)adam->beta2,
        .new1 = (float)(1 - adam->beta1),
        .new2 = (float)(1 - adam->beta2),
        .rate = (float)(update->lr / (1 - pow(adam->beta1, number))),
        .root = (float)(1 / sqrt(1 - pow(adam->beta2, number))),
        .eps = (float)adam->eps,
    };

    if (adam->amsgrad)
        adam_loop_most(update->params, update->grads, update->slots[MEAN],
                       update->slots[SQUARE], update->slots[MOST],
                       update->elems, scalars);
    else
        adam_loop(update->params, update->grads, update->slots[MEAN],
                  update->slots[SQUARE], update->elems, scalars);
}

static void adam_update(const optim_update_t *update)
{
    const adam_options_t *adam = update->options;

    adam_run(update, adam->weight_decay, 0);
}

static void adamw_update(const optim_update_t *update)
{
    const adam_options_t *adam = update->options;

    adam_run(update, 0, adam->weight_decay);
}

const optim_kind_t optim_kind_adam = {
    .row = {.name = "adam",
            .help = "Adam; weight decay is part of the gradient",
            .options = adam_rows},
    .slots = {[MEAN] = "exp_avg",
              [SQUARE] = "exp_avg_sq",
              [MOST] = "max_exp_avg_sq"},
    .lr = offsetof(adam_options_t, lr),
    .slots_used = adam_slots,
    .update = adam_update,
};

const optim_kind_t optim_kind_adamw = {
    .row = {.name = "adamw",
            .help = "Adam with decoupled weight decay",
            .options = adamw_rows},
    .slots = {[MEAN] = "exp_avg",
              [SQUARE] = "exp_avg_sq",
              [MOST] = "max_exp_avg_sq"},
    .lr = offsetof(adam_options_t, lr),
    .slots_used = adam_slots,
    .update = adamw_update,
};
