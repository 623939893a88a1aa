/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op_step: what changes from step to step, how batch norms sum over ranks, and
 * what batch norms do at the end of a step. */
#ifndef CDDP_OP_OP_STEP_H
#define CDDP_OP_OP_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dev/dev.h"

typedef struct op_backend_ops op_backend_ops_t;

#define OP_LOSSES_MAX 8

/* What changes from step to step. */
typedef struct op_step {
    uint64_t seed, epoch; /* of the random numbers */
    /* A loss's backward multiplies the gradient by its scale. 0: the loss is
     * left out, and the gradient is 0, whatever its targets hold. */
    double scales[OP_LOSSES_MAX];
    /* For the end of the step: samples of all ranks, and a set of bits, see
     * op_fold_t. */
    double samples;
    uint64_t lone;
} op_step_t;

/* Replace [count] numbers by their sums over the ranks that take part, in one
 * order on all ranks. [small]: the numbers are in the host's memory; blocks.
 * [on]: the numbers are in the device's memory, written by operations that
 * [stream] already has; only enqueues, so that later operations of [stream]
 * find the sums. An op of cuda calls [on] if it is not NULL, else [small].
 * Other ops call [small]. Both NULL: there is one rank. */
typedef struct op_rank_sum {
    err_code_t (*small)(void *context, double *sums, size_t count, err_t *err);
    err_code_t (*on)(void *context, double *sums, size_t count,
                     dev_stream_t *stream, err_t *err);
    void *context;
} op_rank_sum_t;

typedef struct op_fold {
    size_t channels;
    double space;       /* values per channel and sample */
    double momentum;    /* of the running statistics */
    uint64_t lone;      /* do nothing if step->lone has one of these bits */
    const double *sums; /* [2 channels]: of x, then of x*x */
    const op_step_t *step;
    const int32_t *sound; /* do nothing if it is 0; NULL: it is not */
    float *mean, *var;    /* [channels], updated */
} op_fold_t;

#ifdef __CUDACC__
#define OP_STEP_INLINE static inline __host__ __device__
#else
#define OP_STEP_INLINE static inline
#endif

/* Does the step change the running statistics? */
OP_STEP_INLINE bool op_fold_wanted(const op_fold_t *fold)
{
    return fold->step->samples > 0 && (fold->step->lone & fold->lone) == 0 &&
           (fold->sound == NULL || *fold->sound != 0);
}

/* Update those of channel [c]. */
OP_STEP_INLINE void op_fold_channel(const op_fold_t *fold, size_t c)
{
    const double count = fold->step->samples * fold->space;
    const double momentum = fold->momentum;
    const double m = fold->sums[c] / count;
    double v = fold->sums[fold->channels + c] / count - m * m;

    v = v > 0 ? v : 0;
    /* Unbiased, as the running variance is an estimate for other samples. */
    if (count > 1)
        v *= count / (count - 1);
    fold->mean[c] = (float)((1 - momentum) * fold->mean[c] + momentum * m);
    fold->var[c] = (float)((1 - momentum) * fold->var[c] + momentum * v);
}

/* Update the running statistics of a batch norm as PyTorch does (unbiased
 * variance), with the sums over step->samples samples. Nothing is done for 0
 * samples. Computed in float64. All pointers are to memory of the backend's
 * device. Without a backend (NULL) the host computes; else see op_forward. */
err_code_t op_fold(const op_backend_ops_t *backend, const op_fold_t *fold,
                   dev_stream_t *stream, err_t *err);

/* As op_fold, done at once by the host, which can access the memory. */
void op_fold_host(const op_fold_t *fold);

#endif
