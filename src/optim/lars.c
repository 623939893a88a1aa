/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lars: layer-wise adaptive rate scaling (You, Gitman and Ginsburg, "Large
 * batch training of convolutional networks", 2017, algorithm 1): SGD with
 * momentum. The rate of each tensor is proportional to the norm of the tensor
 * divided by the norm of its gradient. As in the paper, momentum accumulates
 * gradients that are already multiplied by the rate.
 */
#include <math.h>

#include "optim/optim_priv.h"
#include "simd/vector.h"

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

SIMD_CLONES static void lars_loop(float *restrict p,
                                  const float *restrict grads,
                                  float *restrict buffer, size_t elems,
                                  float momentum, float rate, float decay)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float b = momentum * buffer[i] + rate * (grads[i] + decay * p[i]);

        buffer[i] = b;
        p[i] -= b;
    }
}

static void lars_measure(const optim_update_t *u, double squares[2])
{
    squares[0] = optim_block_squares(u->params, u->elems);
    squares[1] = optim_block_squares(u->grads, u->elems);
}

/* Factor of the tensor's learning rate; 1 if a norm is 0 or NaN. */
static double lars_ratio(const optim_update_t *u, const double squares[2])
{
    const lars_options_t *lars = u->options;
    const double weight = sqrt(squares[0]), grad = sqrt(squares[1]);

    if (u->vector && !lars->adapt_vectors)
        return 1;
    if (!(weight > 0) || !(grad > 0))
        return 1;
    return lars->trust * weight / (grad + lars->weight_decay * weight);
}

static void lars_update(const optim_update_t *update)
{
    const lars_options_t *lars = update->options;

    lars_loop(update->params, update->grads, update->slots[0], update->elems,
              (float)lars->momentum, (float)update->lr,
              (float)lars->weight_decay);
}

const optim_kind_t optim_kind_lars = {
    .row = {.name = "lars",
            .help = "Layer-wise adaptive rates on SGD with momentum, for large "
                    "batches",
            .options = lars_rows},
    .slots = {"momentum"},
    .lr = offsetof(lars_options_t, lr),
    .slots_used = lars_slots,
    .measure = lars_measure,
    .ratio = lars_ratio,
    .update = lars_update,
};
