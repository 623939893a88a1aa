/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sync: the small sums over ranks of syncbatchnorm layers, in one of two forms.
 * In a step a rank may have fewer micro-batches than others, none, or an error.
 * Then this rank joins the remaining calls with zeros.
 *
 * On the host the sums use a group of their own. They happen between the
 * buckets of gradients, at places that may differ between ranks, but the
 * collectives of a group must have one order.
 *
 * If the data group only enqueues (comm_group_enqueues), the sums are
 * collectives of that group, behind the stream that computes. This stream waits
 * for the sums; the host does not. NCCL executes the collectives of a
 * communicator in the order of their calls, and two communicators that work at
 * the same time may block each other. So sums and buckets have one order. It
 * depends on the graph alone: before each sum of the last backward,
 * nn_sync_t.grads gradients have been reported to the reducer. The last
 * backward of a step is that of the rank with most micro-batches. A rank with
 * fewer micro-batches, or with an error, reports gradients at these places,
 * too.
 *
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_SYNC_H
#define CDDP_TRAIN_SYNC_H

#include "comm/comm.h"
#include "ddp/ddp.h"
#include "nn/nn.h"

typedef struct train_sync {
    comm_group_t *group; /* of the sums */
    bool enqueues;       /* [group] is the data group */
    const nn_graph_t *graph;
    ddp_t *ddp;
    int64_t done, total; /* calls of this step: made so far, and in total */
    double *zeros;       /* zeros for the largest call */
    double waited;       /* seconds in the calls of this step, on the host */
    /* Only if [group] is the data group: */
    dev_stream_t *stream; /* of this step */
    dev_event_t *written; /* the numbers of a call are written */
    int reported;         /* gradients reported by train_sync_rest */
} train_sync_t;

typedef struct train_sync_plan {
    comm_group_t *group, *data; /* see train_world_t */
    const nn_graph_t *graph;
    ddp_t *ddp; /* over [data] */
} train_sync_plan_t;

/* Open the sums of plan->graph over the ranks. *out is NULL if the graph has no
 * syncbatchnorm layer, or there is one rank. If a rank has no memory for its
 * part, all ranks get its error. Collective. */
err_code_t train_sync_open(const train_sync_plan_t *plan, train_sync_t **out,
                           err_t *err);
/* NULL allowed; call it before the groups are closed, and when the device has
 * done its work. */
void train_sync_close(train_sync_t *sync);

/* The group that only the sums use; NULL: there is none. */
comm_group_t *train_sync_group(const train_sync_t *sync);

/* Begin a step, after ddp_step_begin with the same [stream]. [micros] is the
 * largest number of micro-batches that a rank has in this step. */
void train_sync_begin(train_sync_t *sync, int64_t micros, dev_stream_t *stream);

/* May the backward of the next micro-batch, which is the last one of this rank
 * in the step, report its gradients to the reducer? If not, train_sync_rest
 * does it. NULL allowed. */
bool train_sync_reports(const train_sync_t *sync);

/* nn's reduce_small (sums on the host) and reduce_on (sums of the data group).
 * Collective; train_sync_reduce blocks. */
err_code_t train_sync_reduce(train_sync_t *sync, double *sums, size_t count,
                             err_t *err);
err_code_t train_sync_reduce_on(train_sync_t *sync, double *sums, size_t count,
                                err_t *err);

/* Join the remaining calls of the step with zeros. [computed]: this rank has
 * gradients of all its samples; else its gradients are zeroed. Collective;
 * blocks if the sums are on the host. */
err_code_t train_sync_rest(train_sync_t *sync, bool computed, err_t *err);

#endif
