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

#include "optim/optim_priv.h"
#include "simd/vector.h"

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

typedef struct lamb_scalars {
    float beta2, new1, new2; /* new1 is 1 - beta1, new2 is 1 - beta2 */
    float mean, root; /* 1 / (1 - beta1^number), 1 / sqrt(1 - beta2^number) */
    float eps, decay;
} lamb_scalars_t;

static lamb_scalars_t lamb_prepare(const optim_update_t *update)
{
    const lamb_options_t *lamb = update->options;
    const double number = (double)update->number;

    return (lamb_scalars_t){
        .beta2 = (float)lamb->beta2,
        .new1 = (float)(1 - lamb->beta1),
        .new2 = (float)(1 - lamb->beta2),
        .mean = (float)(1 / (1 - pow(lamb->beta1, number))),
        .root = (float)(1 / sqrt(1 - pow(lamb->beta2, number))),
        .eps = (float)lamb->eps,
        .decay = (float)lamb->weight_decay,
    };
}

SIMD_CLONES static void lamb_moments(const float *restrict grads,
                                     float *restrict mean,
                                     float *restrict square, size_t elems,
                                     lamb_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i];

        mean[i] += s.new1 * (g - mean[i]);
        square[i] = s.beta2 * square[i] + s.new2 * g * g;
    }
}

SIMD_CLONES static void lamb_direction(const float *restrict p,
                                       const float *restrict mean,
                                       const float *restrict square,
                                       float *restrict out, size_t elems,
                                       lamb_scalars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        out[i] = s.mean * mean[i] / (sqrtf(square[i]) * s.root + s.eps) +
                 s.decay * p[i];
}

SIMD_CLONES static void lamb_move(float *restrict p,
                                  const float *restrict direction, size_t elems,
                                  float rate)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] -= rate * direction[i];
}

/* Add the gradients to the moving averages; compute the sums of squares of
 * weights and of direction. */
static void lamb_measure(const optim_update_t *u, double squares[2])
{
    const lamb_options_t *lamb = u->options;
    const lamb_scalars_t s = lamb_prepare(u);
    float direction[OPTIM_BLOCK];

    lamb_moments(u->grads, u->slots[0], u->slots[1], u->elems, s);
    if (u->vector && !lamb->adapt_vectors)
        return;
    lamb_direction(u->params, u->slots[0], u->slots[1], direction, u->elems, s);
    squares[0] = optim_block_squares(u->params, u->elems);
    squares[1] = optim_block_squares(direction, u->elems);
}

/* Norm of the tensor divided by the norm of its direction; 1 if one of the
 * norms is 0 or NaN. */
static double lamb_ratio(const optim_update_t *u, const double squares[2])
{
    (void)u;
    return squares[0] > 0 && squares[1] > 0
               ? sqrt(squares[0]) / sqrt(squares[1])
               : 1;
}

static void lamb_update(const optim_update_t *u)
{
    const lamb_scalars_t s = lamb_prepare(u);
    float direction[OPTIM_BLOCK];

    for (size_t i = 0; i < u->elems; i += OPTIM_BLOCK) {
        const size_t left = u->elems - i;
        const size_t elems = left < OPTIM_BLOCK ? left : OPTIM_BLOCK;

        lamb_direction(u->params + i, u->slots[0] + i, u->slots[1] + i,
                       direction, elems, s);
        lamb_move(u->params + i, direction, elems, (float)u->lr);
    }
}

const optim_kind_t optim_kind_lamb = {
    .row = {.name = "lamb",
            .help = "Layer-wise adaptive rates on Adam, for large batches",
            .options = lamb_rows},
    .slots = {"exp_avg", "exp_avg_sq"},
    .lr = offsetof(lamb_options_t, lr),
    .slots_used = lamb_slots,
    .measure = lamb_measure,
    .ratio = lamb_ratio,
    .update = lamb_update,
};
