/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * weigh: the denominators by which the losses of a step are divided. For most
 * losses the denominator is the number of samples of the step, or a multiple of
 * it, which is known before the step. With weights of classes or samples, or
 * ignored targets, it depends on the targets of all ranks. Then each rank sums
 * over its own targets, and the ranks add up these sums while forward runs. (A
 * mean over the means of the ranks would be wrong.) Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_WEIGH_H
#define CDDP_TRAIN_WEIGH_H

#include "comm/comm.h"
#include "hdf5io/loader.h"
#include "nn/nn.h"
#include "train/data.h"

enum {
    WEIGH_DENOMINATOR,
    WEIGH_COUNTED, /* number of target elements that count */
    WEIGH_SUMS
};

typedef struct train_weigh {
    const nn_graph_t *graph;
    comm_group_t *group;
    /* Sums of each loss, over all ranks after finish. */
    double sums[NN_FIELDS_MAX][WEIGH_SUMS];
    /* Denominator of each loss over this rank's samples. */
    double own[NN_FIELDS_MAX];
    bool local;        /* local SGD: this step divides by [own] */
    comm_work_t *work; /* the sum over ranks in flight; NULL: none */
    double waited;     /* seconds of waiting for this step's sum */
} train_weigh_t;

/*
 * Sum over the targets of [batch] (NULL: this rank has an error and adds
 * nothing) and start the sum over ranks. begin and finish are collective, in
 * this order, whatever error a rank meets in between. finish blocks; a second
 * finish does nothing. Their only error is ERR_PEER.
 */
err_code_t train_weigh_begin(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_weigh_finish(train_weigh_t *weigh, err_t *err);

/* Reproducible mode: begin and finish in one call, along the tree of leaves.
 * [leaves] are this rank's leaves, of [size] samples each. Collective;
 * blocks. */
err_code_t train_weigh_leaves(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                              const comm_leaves_t *leaves, int64_t size,
                              err_t *err);

/* Set [scales] to the factor of each loss's gradients: the weight of the loss
 * over its denominator, or 0 if no target counts. Returns false if all factors
 * are 0, so that there is no update. */
bool train_weigh_scales(const train_weigh_t *weigh,
                        double scales[NN_FIELDS_MAX]);

/* Write the mean of each loss to [out], and the weighted sum of these means to
 * [sum]; [tail] has the sums over all ranks (see replica.h). A mean is NaN if
 * no target of the loss counts. Returns false if that is so for every loss. */
bool train_weigh_losses(const train_weigh_t *weigh, const double *tail,
                        double out[NN_FIELDS_MAX], double *sum);

#endif
