/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* sgd: as torch.optim.SGD. */
#include <string.h>

#include "optim/optim_priv.h"

typedef struct sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
} sgd_options_t;

_Static_assert(sizeof(sgd_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t sgd_rows[] = {
    OPTIM_LR(sgd_options_t, "1e-3"),
    OPTIM_REAL(sgd_options_t, momentum, "0", 0, 1,
               "Weight of past gradients; 0: no momentum"),
    OPTIM_REAL(sgd_options_t, dampening, "0", 0, 1,
               "Fraction of each gradient, after the first, that is not "
               "added to the momentum"),
    {.name = "nesterov",
     .type = OPT_BOOL,
     .offset = offsetof(sgd_options_t, nesterov),
     .fallback = "false",
     .help = "true: Nesterov momentum, which needs momentum > 0"},
    OPTIM_REAL(sgd_options_t, weight_decay, "0", 0, 1e6,
               "This times the parameter is added to the gradient"),
    {.name = NULL},
};

static err_code_t sgd_check(const void *options, err_t *err)
{
    const sgd_options_t *sgd = options;

    if (sgd->nesterov && sgd->momentum == 0)
        return err_set(err, ERR_CONFIG,
                       "optimizer.sgd.nesterov needs a momentum above 0; add "
                       "one, such as momentum: 0.9");
    if (sgd->dampening != 0 && (sgd->momentum == 0 || sgd->nesterov))
        return err_set(
            err, ERR_CONFIG,
            "optimizer.sgd.dampening scales what is added to momentum, "
            "so it needs a momentum above 0, and nesterov: false");
    return ERR_OK;
}

static unsigned sgd_slots(const void *options)
{
    const sgd_options_t *sgd = options;

    return sgd->momentum != 0 ? 1 : 0;
}

static void sgd_rule(const void *options, optim_rule_t *out)
{
    const sgd_options_t *sgd = options;

    out->loop = sgd->momentum != 0 ? OPTIM_SGD_MOMENTUM : OPTIM_SGD_PLAIN;
}

static void sgd_scalars(const void *options, const optim_rate_t *rate,
                        void *out)
{
    const sgd_options_t *sgd = options;
    const optim_sgd_t s = {
        .lr = (float)rate->lr,
        .decay = (float)sgd->weight_decay,
        .momentum = (float)sgd->momentum,
        /* As in PyTorch, the first gradient is not dampened. */
        .fresh = rate->number == 1 ? 1 : (float)(1 - sgd->dampening),
        .past = sgd->nesterov ? (float)sgd->momentum : 1,
        .now = sgd->nesterov ? 1 : 0,
    };

    memcpy(out, &s, sizeof s);
}

const optim_kind_t optim_kind_sgd = {
    .row = {.name = "sgd",
            .help = "Stochastic gradient descent",
            .options = sgd_rows},
    .slots = {"momentum"},
    .validate = sgd_check,
    .slots_used = sgd_slots,
    .lr = offsetof(sgd_options_t, lr),
    .rule = sgd_rule,
    .scalars = sgd_scalars,
};
