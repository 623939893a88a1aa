/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* adamw: Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as
 * torch.optim.AdamW. Scalars are computed in float64, once an update. */
#include <math.h>

#include "optim/optim_priv.h"

typedef struct adamw_options {
    double lr, beta1, beta2, eps, weight_decay;
} adamw_options_t;

_Static_assert(sizeof(adamw_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t adamw_rows[] = {
    {.name = "lr",
     .type = OPT_REAL,
     .offset = offsetof(adamw_options_t, lr),
     .fallback = "1e-3",
     .min = 0,
     .max = 1e6,
     .help = "Learning rate, before the schedule"},
    {.name = "beta1",
     .type = OPT_REAL,
     .offset = offsetof(adamw_options_t, beta1),
     .fallback = "0.9",
     .min = 0,
     .max = 0.999999,
     .help = "Decay of the running mean of gradients"},
    {.name = "beta2",
     .type = OPT_REAL,
     .offset = offsetof(adamw_options_t, beta2),
     .fallback = "0.999",
     .min = 0,
     .max = 0.999999,
     .help = "Decay of the running mean of squared gradients"},
    {.name = "eps",
     .type = OPT_REAL,
     .offset = offsetof(adamw_options_t, eps),
     .fallback = "1e-8",
     /* Not 0: the gaps between parameters would become 0/0. */
     .min = 1e-30,
     .max = 1,
     .help = "Added to the denominator"},
    {.name = "weight_decay",
     .type = OPT_REAL,
     .offset = offsetof(adamw_options_t, weight_decay),
     .fallback = "0.01",
     .min = 0,
     .max = 1e6,
     .help = "Parameters shrink by this times the learning rate"},
    {.name = NULL},
};

static int adamw_slots(const void *options)
{
    (void)options;
    return 2;
}

static double adamw_lr(const void *options)
{
    const adamw_options_t *adamw = options;

    return adamw->lr;
}

/* The scalars of one update. */
typedef struct adamw_scalars {
    float keep; /* 1 - lr * weight_decay */
    float beta2;
    float new1, new2; /* 1 - beta1, 1 - beta2 */
    float rate;       /* lr / (1 - beta1^step) */
    float root;       /* sqrt(1 - beta2^step) */
    float eps;
} adamw_scalars_t;

static void adamw_loop(float *restrict p, const float *restrict grads,
                       float *restrict mean, float *restrict square,
                       size_t elems, adamw_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i];
        float m = mean[i] + s.new1 * (g - mean[i]);
        float v = s.beta2 * square[i] + s.new2 * g * g;

        mean[i] = m;
        square[i] = v;
        p[i] = s.keep * p[i] - s.rate * m / (sqrtf(v) / s.root + s.eps);
    }
}

static void adamw_update(const optim_update_t *update)
{
    const adamw_options_t *adamw = update->options;
    const double step = (double)update->step;
    const adamw_scalars_t scalars = {
        .keep = (float)(1 - update->lr * adamw->weight_decay),
        .beta2 = (float)adamw->beta2,
        .new1 = (float)(1 - adamw->beta1),
        .new2 = (float)(1 - adamw->beta2),
        .rate = (float)(update->lr / (1 - pow(adamw->beta1, step))),
        .root = (float)sqrt(1 - pow(adamw->beta2, step)),
        .eps = (float)adamw->eps,
    };

    adamw_loop(update->params, update->grads, update->slots[0],
               update->slots[1], update->elems, scalars);
}

const optim_kind_t optim_kind_adamw = {
    .row = {.name = "adamw",
            .help = "Adam with decoupled weight decay",
            .options = adamw_rows},
    .slots = {"exp_avg", "exp_avg_sq"},
    .slots_used = adamw_slots,
    .lr = adamw_lr,
    .update = adamw_update,
};
