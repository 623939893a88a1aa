/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lars: layer-wise adaptive rate scaling (You, Gitman and Ginsburg, "Large
 * batch training of convolutional networks", 2017, algorithm 1): SGD with
 * momentum. The rate of each tensor is proportional to the norm of the tensor
 * divided by the norm of its gradient. As in the paper, momentum accumulates
 * gradients that are already multiplied by the rate.
 */
#include <string.h>

#include "optim/optim_priv.h"

typedef struct lars_options {
    double lr, momentum, weight_decay, trust;
    bool adapt_vectors;
} lars_options_t;

_Static_assert(sizeof(lars_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t lars_rows[] = {
    OPTIM_LR(lars_options_t, "0.1"),
    OPTIM_REAL(lars_options_t, momentum, "0.9", 0, 1, "Weight of past updates"),
    OPTIM_REAL(lars_options_t, weight_decay, "0", 0, 1e6,
               "This times the parameter is added to the gradient"),
    OPTIM_REAL(lars_options_t, trust, "0.001", 0, 1e6,
               "Trust coefficient: the rate of a tensor is this times its "
               "norm over the norm of its gradient and decay"),
    {.name = "adapt_vectors",
     .type = OPT_BOOL,
     .offset = offsetof(lars_options_t, adapt_vectors),
     .fallback = "false",
     .help = "true: adapt the rate of tensors of one dimension (biases and "
             "gains), too"},
    {.name = NULL},
};

static unsigned lars_slots(const void *options)
{
    (void)options;
    return 1;
}

static void lars_rule(const void *options, optim_rule_t *out)
{
    const lars_options_t *lars = options;

    out->loop = OPTIM_LARS;
    out->adapt_vectors = lars->adapt_vectors;
    out->trust = lars->trust;
    out->decay = lars->weight_decay;
}

static void lars_scalars(const void *options, const optim_rate_t *rate,
                         void *out)
{
    const lars_options_t *lars = options;
    const optim_lars_t s = {.momentum = (float)lars->momentum,
                            .decay = (float)lars->weight_decay};

    (void)rate; /* update multiplies it by the tensor's factor */
    memcpy(out, &s, sizeof s);
}

const optim_kind_t optim_kind_lars = {
    .row = {.name = "lars",
            .help = "Layer-wise adaptive rates on SGD with momentum, for large "
                    "batches",
            .options = lars_rows},
    .slots = {"momentum"},
    .lr = offsetof(lars_options_t, lr),
    .slots_used = lars_slots,
    .norms = true,
    .rule = lars_rule,
    .scalars = lars_scalars,
};
