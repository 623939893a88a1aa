/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Lanes of a ucx group: a collective is carried out in one or two lanes side by
 * side, so that one computes while the other sends. A lane runs a task
 * (ucx_task.h) and transports its messages over UCX.
 *
 * Tags: kind, source rank, digest of the call, collective number, lane. UCP
 * keeps the order of messages with equal tags between two ranks. A lane posts
 * its sends to a rank in the order in which that rank posts its receives.
 *
 * Thread rule: all functions are for the driver, open and close for the owner
 * while no comm thread runs. None blocks.
 */
#ifndef CDDP_COMM_UCX_LANE_H
#define CDDP_COMM_UCX_LANE_H

#include "comm/node/node.h"
#include "comm/ucx/ucx_net.h"
#include "comm/ucx/ucx_task.h"
#include "comm/ucx/ucx_work.h"

/* What the lanes of a group need of it; must outlive them. */
typedef struct ucx_lane_config {
    ucx_net_t *net;
    node_t *node;
    const node_place_t *place;
    /* [ranks of the node]: scratch for the inputs of a sum. */
    char **parts;
} ucx_lane_config_t;

typedef struct ucx_lane {
    ucx_lane_config_t config;
    const ucx_work_t *work;
    ucx_algorithm_t algorithm;
    uint32_t digest; /* digest of the call (watch.h) */
    bool alive;      /* not yet done */
    bool broken; /* a message failed: wait until the group has failed, too */
    bool idle;   /* waits for ranks of this node: has to check again later */
    unsigned pending;      /* number of outstanding requests */
    ucx_request_t *posted; /* list of these requests */
    ucx_task_t task;       /* its context is this lane */
    /* With several nodes: the all-reduce between them, of which [task]
     * consists; its algorithm, its request. [part] serves other algorithms,
     * too. */
    ucx_task_t part;
    ucx_algorithm_t part_algorithm;
    comm_request_t part_request;
} ucx_lane_t;

/* Allocate the scratch of [lane], which was zeroed. After an error, too,
 * ucx_lane_close must be called. */
err_code_t ucx_lane_open(ucx_lane_t *lane, const ucx_lane_config_t *config,
                         err_t *err);
void ucx_lane_close(ucx_lane_t *lane);

/* Begin to carry out [work] as number [index] of its lanes; [digest] is that of
 * its call. Sets [alive]; the driver then calls the algorithm. */
void ucx_lane_begin(ucx_lane_t *lane, const ucx_work_t *work,
                    ucx_algorithm_t algorithm, uint32_t digest, int index);
/* Cancel all outstanding requests. They end in a later turn. */
void ucx_lane_cancel(ucx_lane_t *lane);

/* Begin an all-reduce of [count] elements at [data] among the ranks that own
 * this part of the buffer on all nodes, with the algorithm of the work's plan.
 */
void ucx_lane_reduce_begin(ucx_lane_t *lane, void *data, size_t count);
/* Post the next round of this all-reduce; false if it is done. */
bool ucx_lane_reduce(ucx_lane_t *lane);

#endif
