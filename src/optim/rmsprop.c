/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* rmsprop (Tieleman and Hinton, 2012) as torch.optim.RMSprop. */
#include <string.h>

#include "optim/optim_priv.h"

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

static void rmsprop_rule(const void *options, optim_rule_t *out)
{
    const rmsprop_options_t *rmsprop = options;
    const bool momentum = rmsprop->momentum != 0;

    if (rmsprop->centered)
        out->loop = momentum ? OPTIM_RMSPROP_BOTH : OPTIM_RMSPROP_CENTERED;
    else
        out->loop = momentum ? OPTIM_RMSPROP_MOMENTUM : OPTIM_RMSPROP_PLAIN;
}

static void rmsprop_scalars(const void *options, const optim_rate_t *rate,
                            void *out)
{
    const rmsprop_options_t *rmsprop = options;
    const optim_rmsprop_t s = {
        .lr = (float)rate->lr,
        .alpha = (float)rmsprop->alpha,
        .fresh = (float)(1 - rmsprop->alpha),
        .eps = (float)rmsprop->eps,
        .momentum = (float)rmsprop->momentum,
        .decay = (float)rmsprop->weight_decay,
    };

    memcpy(out, &s, sizeof s);
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
    .rule = rmsprop_rule,
    .scalars = rmsprop_scalars,
};
