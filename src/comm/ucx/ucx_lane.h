/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Lanes of a ucx group: a collective is carried out in one or two lanes, which
 * run side by side: one computes while the other is on the wire. A lane runs a
 * task (ucx_task.h) and carries its messages over UCX.
 *
 * Tags: kind, source rank, digest of the call, collective number, lane. UCP
 * keeps the order of messages with equal tags between two ranks, and a lane
 * posts its sends to a rank and its receives from a rank in the same order on
 * both sides.
 */
#ifndef CDDP_COMM_UCX_LANE_H
#define CDDP_COMM_UCX_LANE_H

#include <ucp/api/ucp.h>

#include "comm/ucx/ucx_task.h"

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

/*
 * The memory that UCX keeps for us inside each of its requests. UCX may call
 * the completion of a receive before the post has returned: then the callback
 * leaves a mark, and the post that finds it goes on as if it were done.
 */
typedef struct ucx_request {
    struct ucx_request *next, *previous; /* outstanding requests of a lane */
    int peer;                            /* rank at the other end */
    size_t bytes;                        /* of the message */
    ucs_status_t status;                 /* of an early one, and */
    size_t got;                          /* what it brought */
    bool posted;                         /* the post has returned */
    bool early;                          /* it completed before that */
} ucx_request_t;

/* In a completion: is it early? Then the callback does nothing else. */
bool ucx_request_early(ucx_request_t *request);
/* After a post: false if the request is complete already. */
bool ucx_request_posted(ucx_request_t *request);
void ucx_request_free(ucx_request_t *request);

typedef struct ucx_lane {
    ucx_group_t *group;
    ucx_work_t *work;
    ucx_algorithm_t algorithm;
    uint32_t digest;  /* of the call (watch.h) */
    bool alive;       /* not yet done */
    bool broken;      /* a message failed: it waits for the fault to be told */
    bool idle;        /* it waits for ranks of this node: look again later */
    unsigned pending; /* requests that are outstanding, and */
    ucx_request_t *posted;  /* the list of them */
    ucx_task_t task;        /* its context is the lane */
    ucx_task_t part;        /* memory of a task that [task] is composed of */
    ucx_algorithm_t nodes;  /* several nodes: the algorithm of [part], and */
    comm_request_t segment; /* what it reduces */
} ucx_lane_t;

enum { UCX_TAG_DATA = 1, UCX_TAG_NOTE = 2 };
#define UCX_TAG_KIND(kind) ((ucp_tag_t)(kind) << 60)
#define UCX_TAG_KIND_MASK UCX_TAG_KIND(15)

err_code_t ucx_lane_open(ucx_lane_t *lane, ucx_group_t *group, err_t *err);
void ucx_lane_close(ucx_lane_t *lane);
/* Begin to carry out [work], as lane [index] of [lanes]. */
void ucx_lane_begin(ucx_lane_t *lane, ucx_work_t *work,
                    ucx_algorithm_t algorithm, uint32_t digest, int index,
                    int lanes);
/* Cancel all outstanding requests. */
void ucx_lane_cancel(ucx_lane_t *lane);

/* Begin an all-reduce of [count] elements at [data] with the ranks of other
 * nodes that own the same slices, as the plan of the work says. */
void ucx_lane_reduce_begin(ucx_lane_t *lane, void *data, size_t count);
/* Its next round; false: it is done. */
bool ucx_lane_reduce(ucx_lane_t *lane);

/* ---- over several nodes: ucx_span.c, ucx_stage_net.c ----------------------
 */

/* All-reduce of an arena, and of other memory. Their task is one of a lane. */
bool ucx_span(ucx_task_t *task);
bool ucx_stage_span(ucx_task_t *task);
/* Of ucx_stage_span: has what it waits for come? */
bool ucx_stage_lane_came(const ucx_lane_t *lane);

#endif
