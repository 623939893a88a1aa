/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lamb: layer-wise adaptation on top of Adam (You et al., "Large batch
 * optimization for deep learning: training BERT in 76 minutes", 2020, algorithm
 * 2, with the identity as scaling function). The step of a tensor is
 * proportional to the norm of the tensor; the direction is Adam's plus weight
 * decay. The direction is not stored but computed twice, block by block: for
 * its norm and for the update.
 */
#include <math.h>
#include <string.h>

#include "optim/optim_priv.h"

typedef struct lamb_options {
    double lr, beta1, beta2, eps, weight_decay;
    bool adapt_vectors;
} lamb_options_t;

_Static_assert(sizeof(lamb_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t lamb_rows[] = {
    OPTIM_LR(lamb_options_t, "1e-3"),
    OPTIM_REAL(lamb_options_t, beta1, "0.9", 0, 0.999999,
               "Decay of the running mean of gradients"),
    OPTIM_REAL(lamb_options_t, beta2, "0.999", 0, 0.999999,
               "Decay of the running mean of squared gradients"),
    OPTIM_REAL(lamb_options_t, eps, "1e-6", 1e-30, 1,
               "Added to the denominator"),
    OPTIM_REAL(
        lamb_options_t, weight_decay, "0.01", 0, 1e6,
        "This times the parameter is added to the direction of the update"),
    {.name = "adapt_vectors",
     .type = OPT_BOOL,
     .offset = offsetof(lamb_options_t, adapt_vectors),
     .fallback = "false",
     .help = "true: adapt the rate of tensors of one dimension (biases and "
             "gains), too"},
    {.name = NULL},
};

static unsigned lamb_slots(const void *options)
{
    (void)options;
    return 3;
}

static void lamb_rule(const void *options, optim_rule_t *out)
{
    const lamb_options_t *lamb = options;

    out->loop = OPTIM_LAMB;
    out->adapt_vectors = lamb->adapt_vectors;
}

static void lamb_scalars(const void *options, const optim_rate_t *rate,
                         void *out)
{
    const lamb_options_t *lamb = options;
    const double number = (double)rate->number;
    const optim_lamb_t s = {
        .beta2 = (float)lamb->beta2,
        .new1 = (float)(1 - lamb->beta1),
        .new2 = (float)(1 - lamb->beta2),
        .mean = (float)(1 / (1 - pow(lamb->beta1, number))),
        .root = (float)(1 / sqrt(1 - pow(lamb->beta2, number))),
        .eps = (float)lamb->eps,
        .decay = (float)lamb->weight_decay,
    };

    memcpy(out, &s, sizeof s);
}

const optim_kind_t optim_kind_lamb = {
    .row = {.name = "lamb",
            .help = "Layer-wise adaptive rates on Adam, for large batches",
            .options = lamb_rows},
    .slots = {"exp_avg", "exp_avg_sq"},
    .lr = offsetof(lamb_options_t, lr),
    .slots_used = lamb_slots,
    .norms = true,
    .rule = lamb_rule,
    .scalars = lamb_scalars,
};
