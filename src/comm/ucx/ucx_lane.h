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
 */
#ifndef CDDP_COMM_UCX_LANE_H
#define CDDP_COMM_UCX_LANE_H

#include <ucp/api/ucp.h>

#include "comm/ucx/ucx_task.h"

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

/*
 * Memory that UCX reserves for us in each of its requests. UCX may call the
 * completion of a receive before the post has returned: then the callback sets
 * [early], and the post continues as if the message had been done at once.
 */
typedef struct ucx_request {
    /* List of the lane's outstanding requests. */
    struct ucx_request *next, *previous;
    int peer;            /* rank at the other end */
    size_t bytes;        /* bytes of the message */
    ucs_status_t status; /* result of an early completion, and */
    size_t got;          /* the bytes that it received */
    bool posted;         /* the post has returned */
    bool early;          /* the message completed before the post returned */
} ucx_request_t;

/* In a completion callback: return whether it is early. Then the callback does
 * nothing else. */
bool ucx_request_early(ucx_request_t *request);
/* After a post: return whether the request is still outstanding. */
bool ucx_request_posted(ucx_request_t *request);
void ucx_request_free(ucx_request_t *request);

typedef struct ucx_lane {
    ucx_group_t *group;
    ucx_work_t *work;
    ucx_algorithm_t algorithm;
    uint32_t digest; /* digest of the call (watch.h) */
    bool alive;      /* not yet done */
    /* A message failed: the lane waits until the fault is reported. */
    bool broken;
    bool idle; /* waits for ranks of this node: has to check again later */
    unsigned pending;       /* number of outstanding requests */
    ucx_request_t *posted;  /* list of these requests */
    ucx_task_t task;        /* its context is this lane */
    ucx_task_t part;        /* memory for a task of which [task] consists */
    ucx_algorithm_t nodes;  /* several nodes: the algorithm of [part], and */
    comm_request_t segment; /* the request of [part] */
} ucx_lane_t;

enum { UCX_TAG_DATA = 1, UCX_TAG_NOTE = 2 };
#define UCX_TAG_KIND(kind) ((ucp_tag_t)(kind) << 60)
#define UCX_TAG_KIND_MASK UCX_TAG_KIND(15)

err_code_t ucx_lane_open(ucx_lane_t *lane, ucx_group_t *group, err_t *err);
void ucx_lane_close(ucx_lane_t *lane);
/* Begin to carry out [work] as lane number [index] of [lanes]. */
void ucx_lane_begin(ucx_lane_t *lane, ucx_work_t *work,
                    ucx_algorithm_t algorithm, uint32_t digest, int index,
                    int lanes);
/* Cancel all outstanding requests. */
void ucx_lane_cancel(ucx_lane_t *lane);

/* Begin an all-reduce of [count] elements at [data] among the ranks that own
 * these slices on all nodes, with the algorithm of the work's plan. */
void ucx_lane_reduce_begin(ucx_lane_t *lane, void *data, size_t count);
/* Make the next round of this all-reduce; false if it is done. */
bool ucx_lane_reduce(ucx_lane_t *lane);

/* ---- over several nodes: ucx_span.c, ucx_stage_net.c ----------------------
 */

/* All-reduce over several nodes: ucx_span of data in an arena, ucx_stage_span
 * of other data. The task must be the task of a lane. */
bool ucx_span(ucx_task_t *task);
bool ucx_stage_span(ucx_task_t *task);
/* For ucx_stage_span: return whether all ranks of the node have copied the
 * segment for which the lane waits. */
bool ucx_stage_lane_came(const ucx_lane_t *lane);

#endif
