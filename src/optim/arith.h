/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * arith: the arithmetic of optimizers for one element. All places compile these
 * functions, without fused multiply-add; so their bits are equal. Each kind has
 * scalars, which the host computes in float64, and rounds to float, once for
 * each set of options and step.
 *
 * A function updates the state of the element, and returns the parameter. A
 * state that is NULL is unused.
 */
#ifndef CDDP_OPTIM_ARITH_H
#define CDDP_OPTIM_ARITH_H

#include <math.h>
#include <stddef.h>

#include "optim/rule.h"

typedef struct optim_sgd {
    float lr, decay, momentum;
    float fresh; /* factor of the gradient in the momentum buffer */
    /* Factors of the buffer and of the gradient in the update. */
    float past, now;
} optim_sgd_t;

/* The buffer begins with zeros, so the first update copies the gradient into
 * it, as PyTorch does. */
OPTIM_INLINE float optim_sgd(float p, float grad, float *buffer,
                             const optim_sgd_t *s)
{
    float g = grad + s->decay * p;
    float b;

    if (buffer == NULL)
        return p - s->lr * g;
    b = s->momentum * *buffer + s->fresh * g;
    *buffer = b;
    return p - s->lr * (s->now * g + s->past * b);
}

typedef struct optim_adam {
    float add;  /* added to the gradient: weight decay that is not decoupled */
    float keep; /* factor of the weights: 1 - lr * weight_decay if decoupled */
    float beta2;
    float new1, new2; /* 1 - beta1, 1 - beta2 */
    float rate;       /* lr / (1 - beta1^number) */
    float root;       /* 1 / sqrt(1 - beta2^number) */
    float eps;
} optim_adam_t;

/* [most]: the largest mean of squares so far, for amsgrad. NaN stays NaN. */
OPTIM_INLINE float optim_adam(float p, float grad, float *mean, float *square,
                              float *most, const optim_adam_t *s)
{
    float g = grad + s->add * p;
    float m = *mean + s->new1 * (g - *mean);
    float v = s->beta2 * *square + s->new2 * g * g;
    float top = v;

    *mean = m;
    *square = v;
    if (most != NULL) {
        top = v <= *most ? *most : v;
        *most = top;
    }
    return s->keep * p - s->rate * m / (sqrtf(top) * s->root + s->eps);
}

typedef struct optim_rmsprop {
    float lr, alpha, fresh, eps, momentum, decay; /* fresh: 1 - alpha */
} optim_rmsprop_t;

/* Rounding may make a variance of 0 negative, so it is clamped to 0. */
OPTIM_INLINE float optim_rmsprop(float p, float grad, float *square,
                                 float *mean, float *buffer,
                                 const optim_rmsprop_t *s)
{
    float g = grad + s->decay * p;
    float v = s->alpha * *square + s->fresh * g * g;
    float spread = v, move;

    *square = v;
    if (mean != NULL) {
        float m = *mean + s->fresh * (g - *mean);

        *mean = m;
        spread = v - m * m;
        spread = spread > 0 ? spread : 0;
    }
    move = g / (sqrtf(spread) + s->eps);
    if (buffer != NULL) {
        move = s->momentum * *buffer + move;
        *buffer = move;
    }
    return p - s->lr * move;
}

typedef struct optim_lamb {
    float beta2, new1, new2; /* new1 is 1 - beta1, new2 is 1 - beta2 */
    float mean, root; /* 1 / (1 - beta1^number), 1 / sqrt(1 - beta2^number) */
    float eps, decay;
} optim_lamb_t;

OPTIM_INLINE void optim_lamb_moments(float grad, float *mean, float *square,
                                     const optim_lamb_t *s)
{
    *mean += s->new1 * (grad - *mean);
    *square = s->beta2 * *square + s->new2 * grad * grad;
}

/* The parameter becomes p - rate * direction. */
OPTIM_INLINE float optim_lamb_direction(float p, float mean, float square,
                                        const optim_lamb_t *s)
{
    return s->mean * mean / (sqrtf(square) * s->root + s->eps) + s->decay * p;
}

typedef struct optim_lars {
    float momentum, decay;
} optim_lars_t;

OPTIM_INLINE float optim_lars(float p, float grad, float *buffer, float rate,
                              const optim_lars_t *s)
{
    float b = s->momentum * *buffer + rate * (grad + s->decay * p);

    *buffer = b;
    return p - b;
}

OPTIM_INLINE float optim_average_next(float average, float p, float fresh)
{
    return average + fresh * (p - average);
}

/* Clamp to [-most, most]. NaN stays NaN. */
OPTIM_INLINE float optim_clamp(float g, float most)
{
    g = g > most ? most : g;
    return g < -most ? -most : g;
}

#endif
