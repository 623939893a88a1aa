/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * rule: what places know of an optimizer's options, and the arithmetic in
 * float64 that is done once a tensor or once a step. All places compile these
 * functions, without fused multiply-add.
 */
#ifndef CDDP_OPTIM_RULE_H
#define CDDP_OPTIM_RULE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "optim/place.h"

#if defined(__CUDACC__)
#define OPTIM_INLINE __host__ __device__ static inline
#else
#define OPTIM_INLINE static inline __attribute__((always_inline))
#endif

#define OPTIM_CLIP_EPS 1e-6 /* value of torch.nn.utils.clip_grad_norm_ */
#define OPTIM_SLOTS_MAX 3
#define OPTIM_SCALARS_MAX 8

/* The loop of a set of options. */
typedef enum optim_loop {
    OPTIM_SGD_PLAIN,
    OPTIM_SGD_MOMENTUM,
    OPTIM_ADAM,
    OPTIM_ADAM_MOST,
    OPTIM_RMSPROP_PLAIN,
    OPTIM_RMSPROP_CENTERED,
    OPTIM_RMSPROP_MOMENTUM,
    OPTIM_RMSPROP_BOTH,
    OPTIM_LAMB,
    OPTIM_LARS,
    OPTIM_LOOPS
} optim_loop_t;

/* What a set of options says of its loop for the whole run. */
typedef struct optim_rule {
    optim_loop_t loop;
    bool adapt_vectors;  /* LAMB, LARS: tensors of one dimension, too */
    double trust, decay; /* LARS: trust coefficient and weight decay */
} optim_rule_t;

/* What a set of options needs in one update. */
typedef struct optim_set_in {
    double rate; /* the learning rate of the set */
    float scalars[OPTIM_SCALARS_MAX];
} optim_set_in_t;

struct optim_in {
    int64_t number; /* of the update */
    int64_t sets;   /* [sets] of optim_set_in_t follow */
};

OPTIM_INLINE const optim_set_in_t *optim_in_sets(const struct optim_in *in)
{
    return (const optim_set_in_t *)(in + 1);
}

/* The factor of a tensor's learning rate, from the sums of squares of its
 * weights and of its gradients (LARS) or its direction (LAMB). 1 if one of the
 * norms is 0 or NaN. */
OPTIM_INLINE double optim_ratio(const optim_rule_t *rule,
                                const double squares[2])
{
    const double weight = sqrt(squares[0]), other = sqrt(squares[1]);

    if (!(weight > 0) || !(other > 0))
        return 1;
    return rule->loop == OPTIM_LAMB
               ? weight / other
               : rule->trust * weight / (other + rule->decay * weight);
}

OPTIM_INLINE bool optim_finite(double x)
{
    return x - x == 0;
}

/* The loss of a step. Returns whether any loss counts in it. */
OPTIM_INLINE bool optim_loss(const optim_question_t *q, double *loss)
{
    bool any = false;

    *loss = 0;
    for (int k = 0; k < q->losses; k++) {
        const double weight = q->about->weights[k];
        const double denominator = q->about->denominators[k];

        if (weight == 0 || !(denominator > 0))
            continue;
        *loss += weight * (q->sums[k * q->stride] / denominator);
        any = true;
    }
    if (!any)
        *loss = NAN;
    return any;
}

OPTIM_INLINE void optim_verdict_fill(const optim_question_t *q,
                                     optim_verdict_t *v)
{
    const float factor = (float)(q->limit / (v->norm + OPTIM_CLIP_EPS));
    const bool any = optim_loss(q, &v->loss);

    v->factor = q->limit > 0 && !(factor >= 1) ? factor : 1;
    v->sound = !(*q->failed > 0) && optim_finite(v->norm) &&
               (!any || optim_finite(v->loss));
    v->updates = v->sound && q->about->counts != 0;
}

#endif
