/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * adam (Kingma and Ba, 2015) as torch.optim.Adam, with weight decay in the
 * gradient, and adamw (Loshchilov and Hutter, 2019) as torch.optim.AdamW, with
 * decoupled weight decay.
 */
#include <math.h>
#include <string.h>

#include "optim/optim_priv.h"

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

static void adam_rule(const void *options, optim_rule_t *out)
{
    const adam_options_t *adam = options;

    out->loop = adam->amsgrad ? OPTIM_ADAM_MOST : OPTIM_ADAM;
}

static optim_adam_t adam_common(const adam_options_t *adam,
                                const optim_rate_t *rate)
{
    const double number = (double)rate->number;

    return (optim_adam_t){
        .keep = 1,
        .beta2 = (float)adam->beta2,
        .new1 = (float)(1 - adam->beta1),
        .new2 = (float)(1 - adam->beta2),
        .rate = (float)(rate->lr / (1 - pow(adam->beta1, number))),
        .root = (float)(1 / sqrt(1 - pow(adam->beta2, number))),
        .eps = (float)adam->eps,
    };
}

static void adam_scalars(const void *options, const optim_rate_t *rate,
                         void *out)
{
    const adam_options_t *adam = options;
    optim_adam_t s = adam_common(adam, rate);

    s.add = (float)adam->weight_decay;
    memcpy(out, &s, sizeof s);
}

static void adamw_scalars(const void *options, const optim_rate_t *rate,
                          void *out)
{
    const adam_options_t *adam = options;
    optim_adam_t s = adam_common(adam, rate);

    s.keep = (float)(1 - rate->lr * adam->weight_decay);
    memcpy(out, &s, sizeof s);
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
    .rule = adam_rule,
    .scalars = adam_scalars,
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
    .rule = adam_rule,
    .scalars = adamw_scalars,
};
