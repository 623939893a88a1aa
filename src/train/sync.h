/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sync: the small sums over ranks of syncbatchnorm layers. They use a group of
 * their own, as they happen between the buckets of gradients, at places that
 * may differ between ranks, and a group's collectives must have one order. A
 * rank may have fewer micro-batches than others in a step, none, or an error.
 * It then joins the remaining calls with zeros. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_SYNC_H
#define CDDP_TRAIN_SYNC_H

#include "comm/comm.h"
#include "nn/nn.h"

typedef struct train_sync {
    comm_group_t *group;
    const nn_graph_t *graph;
    int64_t done, total; /* calls of this step: made so far, and in total */
    double *zeros;       /* zeros for the largest call */
    double waited;       /* seconds in the calls of this step */
} train_sync_t;

/* Open the sums of [graph] over the ranks of [parent]. *out is NULL if the
 * graph has no syncbatchnorm layer, or [parent] has one rank. Collective. */
err_code_t train_sync_open(comm_group_t *parent, const nn_graph_t *graph,
                           train_sync_t **out, err_t *err);
/* NULL allowed; call it before [parent] is closed. */
void train_sync_close(train_sync_t *sync);

/* The group of the sums; NULL: none. */
comm_group_t *train_sync_group(const train_sync_t *sync);

/* Begin a step. [micros] is the largest number of micro-batches that a rank has
 * in it. */
void train_sync_begin(train_sync_t *sync, int64_t micros);

/* Sum [count] elements of [sums] over ranks: nn's reduce_small. Collective;
 * blocks. */
err_code_t train_sync_reduce(train_sync_t *sync, double *sums, size_t count,
                             err_t *err);

/* Join the remaining calls of the step with zeros. Collective; blocks. */
err_code_t train_sync_rest(train_sync_t *sync, err_t *err);

#endif
