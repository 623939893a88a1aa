/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* rmsprop (Tieleman and Hinton, 2012) as torch.optim.RMSprop. */
#include <math.h>

#include "optim/optim_priv.h"
#include "simd/vector.h"

typedef struct rmsprop_options {
    double lr, alpha, eps, momentum, weight_decay;
    bool centered;
} rmsprop_options_t;

_Static_assert(sizeof(rmsprop_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t rmsprop_rows[] = {
    OPTIM_LR(rmsprop_options_t, "1e-2"),
    OPTIM_REAL(rmsprop_options_t, alpha, "0.99", 0, 0.999999,
               "Decay of the running mean of squared gradients"),
    OPTIM_REAL(rmsprop_options_t, eps, "1e-8", 1e-30, 1,
               "Added to the denominator"),
    OPTIM_REAL(rmsprop_options_t, momentum, "0", 0, 1,
               "Weight of past updates; 0: no momentum"),
    {.name = "centered",
     .type = OPT_BOOL,
     .offset = offsetof(rmsprop_options_t, centered),
     .fallback = "false",
     .help = "true: divide by the running standard deviation of the gradients "
             "instead"},
    OPTIM_REAL(rmsprop_options_t, weight_decay, "0", 0, 1e6,
               "This times the parameter is added to the gradient"),
    {.name = NULL},
};

enum { SQUARE, MEAN, MOMENTUM };

static unsigned rmsprop_slots(const void *options)
{
    const rmsprop_options_t *rmsprop = options;

    return 1U << SQUARE | (rmsprop->centered ? 1U << MEAN : 0) |
           (rmsprop->momentum != 0 ? 1U << MOMENTUM : 0);
}

typedef struct rmsprop_scalars {
    float lr, alpha, fresh, eps, momentum, decay; /* fresh: 1 - alpha */
} rmsprop_scalars_t;

SIMD_CLONES static void loop_plain(float *restrict p,
                                   const float *restrict grads,
                                   float *restrict square, size_t elems,
                                   rmsprop_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.decay * p[i];
        float v = s.alpha * square[i] + s.fresh * g * g;

        square[i] = v;
        p[i] -= s.lr * (g / (sqrtf(v) + s.eps));
    }
}

/* Rounding may make a variance of 0 negative, so it is clamped to 0. */
SIMD_CLONES static void loop_centered(float *restrict p,
                                      const float *restrict grads,
                                      float *restrict square,
                                      float *restrict mean, size_t elems,
                                      rmsprop_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.decay * p[i];
        float v = s.alpha * square[i] + s.fresh * g * g;
        float m = mean[i] + s.fresh * (g - mean[i]);
        float spread = v - m * m;

        square[i] = v;
        mean[i] = m;
        p[i] -= s.lr * (g / (sqrtf(spread > 0 ? spread : 0) + s.eps));
    }
}

SIMD_CLONES static void loop_momentum(float *restrict p,
                                      const float *restrict grads,
                                      float *restrict square,
                                      float *restrict buffer, size_t elems,
                                      rmsprop_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.decay * p[i];
        float v = s.alpha * square[i] + s.fresh * g * g;
        float b = s.momentum * buffer[i] + g / (sqrtf(v) + s.eps);

        square[i] = v;
        buffer[i] = b;
        p[i] -= s.lr * b;
    }
}

SIMD_CLONES static void loop_both(float *restrict p,
                                  const float *restrict grads,
                                  float *restrict square, float *restrict mean,
                                  float *restrict buffer, size_t elems,
                                  rmsprop_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.decay * p[i];
        float v = s.alpha * square[i] + s.fresh * g * g;
        float m = mean[i] + s.fresh * (g - mean[i]);
        float spread = v - m * m;
        float b = s.momentum * buffer[i] +
                  g / (sqrtf(spread > 0 ? spread : 0) + s.eps);

        square[i] = v;
        mean[i] = m;
        buffer[i] = b;
        p[i] -= s.lr * b;
    }
}

static void rmsprop_update(const optim_update_t *u)
{
    const rmsprop_options_t *rmsprop = u->options;
    const rmsprop_scalars_t s = {
        .lr = (float)u->lr,
        .alpha = (float)rmsprop->alpha,
        .fresh = (float)(1 - rmsprop->alpha),
        .eps = (float)rmsprop->eps,
        .momentum = (float)rmsprop->momentum,
        .decay = (float)rmsprop->weight_decay,
    };

    if (rmsprop->centered && rmsprop->momentum != 0)
        loop_both(u->params, u->grads, u->slots[SQUARE], u->slots[MEAN],
                  u->slots[MOMENTUM], u->elems, s);
    else if (rmsprop->centered)
        loop_centered(u->params, u->grads, u->slots[SQUARE], u->slots[MEAN],
                      u->elems, s);
    else if (rmsprop->momentum != 0)
        loop_momentum(u->params, u->grads, u->slots[SQUARE], u->slots[MOMENTUM],
                      u->elems, s);
    else
        loop_plain(u->params, u->grads, u->slots[SQUARE], u->elems, s);
}

const optim_kind_t optim_kind_rmsprop = {
    .row = {.name = "rmsprop",
            .help = "RMSprop: gradients divided by their running root mean "
                    "square",
            .options = rmsprop_rows},
    .slots =
        {[SQUARE] = "square_avg", [MEAN] = "grad_avg", [MOMENTUM] = "momentum"},
    .lr = offsetof(rmsprop_options_t, lr),
    .slots_used = rmsprop_slots,
    .update = rmsprop_update,
};
