/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* sgd: as torch.optim.SGD. */
#include "optim/optim_priv.h"
#include "simd/vector.h"

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

SIMD_CLONES static void sgd_plain(float *restrict p,
                                  const float *restrict grads, size_t elems,
                                  float lr, float decay)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] -= lr * (grads[i] + decay * p[i]);
}

/* Factors of momentum in an update. */
typedef struct sgd_scalars {
    float lr, decay, momentum;
    float fresh; /* factor of the gradient in the momentum buffer */
    /* Factors of the buffer and of the gradient in the update. */
    float past, now;
} sgd_scalars_t;

/* The buffer begins with zeros, so the first update copies the gradient into
 * it, as PyTorch does. */
SIMD_CLONES static void sgd_momentum(float *restrict p,
                                     const float *restrict grads,
                                     float *restrict buffer, size_t elems,
                                     sgd_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i] + s.decay * p[i];
        float b = s.momentum * buffer[i] + s.fresh * g;

        buffer[i] = b;
        p[i] -= s.lr * (s.now * g + s.past * b);
    }
}

static void sgd_update(const optim_update_t *update)
{
    const sgd_options_t *sgd = update->options;
    const sgd_scalars_t s = {
        .lr = (float)update->lr,
        .decay = (float)sgd->weight_decay,
        .momentum = (float)sgd->momentum,
        /* As in PyTorch, the first gradient is not dampened. */
        .fresh = update->number == 1 ? 1 : (float)(1 - sgd->dampening),
        .past = sgd->nesterov ? (float)sgd->momentum : 1,
        .now = sgd->nesterov ? 1 : 0,
    };

    if (sgd->momentum == 0)
        sgd_plain(update->params, update->grads, update->elems, s.lr, s.decay);
    else
        sgd_momentum(update->params, update->grads, update->slots[0],
                     update->elems, s);
}

const optim_kind_t optim_kind_sgd = {
    .row = {.name = "sgd",
            .help = "Stochastic gradient descent",
            .options = sgd_rows},
    .slots = {"momentum"},
    .validate = sgd_check,
    .slots_used = sgd_slots,
    .lr = offsetof(sgd_options_t, lr),
    .update = sgd_update,
};
