/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tail: float64 sums over ranks that are reduced with each step's gradients, in
 * the memory of the device. They tell all ranks what must be known at the end
 * of the step.
 */
#ifndef CDDP_TRAIN_TAIL_H
#define CDDP_TRAIN_TAIL_H

#include "nn/nn.h"

/* First come the flags, which are whole numbers: */
enum {
    TRAIN_TAIL_REQUEST, /* ranks that were asked (USR1, or because the end of
                           the job is near) to checkpoint and stop */
    TRAIN_TAIL_TERM,    /* ranks that were told to end (TERM) */
    TRAIN_TAIL_DUE,     /* set by rank 0: what is due, see below */
    TRAIN_TAIL_FAILED,  /* ranks that met an error in this step */
    TRAIN_TAIL_FLAGS    /* number of flags */
};

/* Rank 0's clock decides when these are due: */
#define TRAIN_DUE_SAVE 1 /* a checkpoint */
#define TRAIN_DUE_LOOK 2 /* ranks compare their loads (straggler.h) */
#define TRAIN_DUE_JOIN 4 /* its save in progress has ended (save.h) */

/* After the flags, these sums for each loss: */
enum {
    TRAIN_TAIL_LOSS,    /* sum of the loss over samples */
    TRAIN_TAIL_CORRECT, /* correct answers */
    TRAIN_TAIL_SUMS     /* number of sums of a loss */
};

/* Index of the first sum of loss [loss]. If [loss] is the number of losses:
 * index of the batch-norm moments, which follow the sums of the losses. */
static inline size_t train_tail_sums(int loss)
{
    return TRAIN_TAIL_FLAGS + TRAIN_TAIL_SUMS * (size_t)loss;
}

/* These sums of all losses, in the tail [tail]. */
static inline nn_result_t *train_tail_results(double *tail)
{
    return (nn_result_t *)(tail + train_tail_sums(0));
}

/* Number of doubles in the tail of [graph]. */
static inline size_t train_tail_doubles(const nn_graph_t *graph)
{
    return train_tail_sums(nn_graph_losses(graph)) +
           nn_graph_moment_elems(graph);
}

#endif
