/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sync: the small sums of syncbatchnorm layers. They travel in a group of their
 * own, as they happen between buckets whose order they must not share: a rank
 * that has fewer micro-batches than others in a step, none, or an error, makes
 * up for the calls that it owes with zeros. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_SYNC_H
#define CDDP_TRAIN_SYNC_H

#include "comm/comm.h"
#include "nn/nn.h"

typedef struct train_sync {
    comm_group_t *group;
    const nn_graph_t *graph;
    int64_t done, owed; /* calls of this step */
    double *zeros;      /* room for any call */
} train_sync_t;

/* Open for [graph] over the ranks of [parent]; *out stays NULL if the graph has
 * no such layer, or [parent] one rank. Collective. */
err_code_t train_sync_open(comm_group_t *parent, const nn_graph_t *graph,
                           train_sync_t **out, err_t *err);
void train_sync_close(train_sync_t *sync); /* NULL allowed; before the parent */

/* Its group, NULL: none. */
comm_group_t *train_sync_group(const train_sync_t *sync);

/* A step begins in which the busiest rank has [micros] micro-batches. */
void train_sync_begin(train_sync_t *sync, int64_t micros);

/* One call of nn's reduce_small. Collective. */
err_code_t train_sync_reduce(train_sync_t *sync, double *sums, size_t count,
                             err_t *err);

/* The calls that this rank still owes. Collective. */
err_code_t train_sync_rest(train_sync_t *sync, err_t *err);

#endif
