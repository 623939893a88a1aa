/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * weigh: what the losses of a step are divided by. For most losses that is the
 * number of samples of the step, or a multiple of it, which is known before the
 * step. Weights of classes or samples and ignored targets make it depend on the
 * targets of all ranks: then each rank sums over its own targets, and the ranks
 * add up these sums while forward runs. (A mean over the means of the ranks
 * would be wrong.) Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_WEIGH_H
#define CDDP_TRAIN_WEIGH_H

#include "comm/comm.h"
#include "hdf5io/loader.h"
#include "nn/nn.h"
#include "train/data.h"

enum {
    WEIGH_DENOMINATOR,
    WEIGH_COUNTED, /* elements of targets that count */
    WEIGH_SUMS
};

typedef struct train_weigh {
    const nn_graph_t *graph;
    comm_group_t *group;
    double sums[NN_FIELDS_MAX][WEIGH_SUMS]; /* of each loss; over all ranks once
                                               finish has returned */
    double own[NN_FIELDS_MAX]; /* denominators over this rank's samples */
    bool local;                /* local SGD: this step divides by own */
    comm_work_t *work;         /* the sum over ranks in flight; NULL: none */
} train_weigh_t;

/*
 * Sum over the targets of [batch] (NULL: this rank has an error and adds
 * nothing) and start the sum over ranks. begin and finish are collective, in
 * this order, whatever error a rank meets in between. A second finish does
 * nothing.
 */
err_code_t train_weigh_begin(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_weigh_finish(train_weigh_t *weigh, err_t *err);

/* Reproducible mode: begin and finish in one call, along the tree of leaves.
 * [leaves] are this rank's leaves, of [size] samples each. Collective. */
err_code_t train_weigh_leaves(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                              const train_leaves_t *leaves, int64_t size,
                              err_t *err);

/* The factor of each loss's gradients: its weight over its denominator, or 0 if
 * no target counts. False: all factors are 0, so there is no update. */
bool train_weigh_scales(const train_weigh_t *weigh,
                        double scales[NN_FIELDS_MAX]);

/* The mean of each loss into [out], from the sums over all ranks in [tail] (see
 * replica.h), and their weighted sum into [sum]. NaN where no target counts;
 * false if that is so for every loss. */
bool train_weigh_losses(const train_weigh_t *weigh, const double *tail,
                        double out[NN_FIELDS_MAX], double *sum);

#endif
