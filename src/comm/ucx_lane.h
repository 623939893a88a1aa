/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Lanes of a ucx group: how a collective is carried out (ucx_net.c and the
 * algorithms in ucx_small.c, ucx_ring.c, ucx_tree.c).
 *
 * A lane is a state machine: whenever none of its requests is outstanding, its
 * algorithm computes on what has come and posts the next round.
 *
 * Tags: kind, source rank, digest of the call, collective number, lane. UCP
 * keeps the order of messages with equal tags between two ranks, and a lane
 * posts its sends to a rank and its receives from a rank in the same order on
 * both sides.
 */
#ifndef CDDP_COMM_UCX_LANE_H
#define CDDP_COMM_UCX_LANE_H

#include <ucp/api/ucp.h>

#include "comm/comm_ops.h"

#define UCX_LANES 2

/* What one message of a segmented algorithm carries. Over TCP several times as
 * much on the wire of both lanes took up to four times as long. */
#define UCX_CHUNK_BYTES ((size_t)64 << 10)

/* Scratch of a lane at least. */
#define UCX_SCRATCH_BYTES ((size_t)256 << 10)

typedef struct ucx_group ucx_group_t;
typedef struct ucx_lane ucx_lane_t;

/* Post the next round of [lane] (whose requests have all completed); false:
 * the lane is done. */
typedef bool (*ucx_algorithm_t)(ucx_group_t *group, ucx_lane_t *lane);

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

/* State of an all-reduce over several nodes (ucx_span.c). */
typedef struct ucx_span {
    char *data;   /* the segment that is being reduced, */
    size_t count; /* its elements, and */
    size_t end;   /* where the lane's slice ends, elements */
    int phase;    /* of the stage between nodes (ucx_span_net.c), and */
    int mask;     /* its round */
} ucx_span_t;

struct ucx_lane {
    ucx_group_t *group;
    struct ucx_work *work;
    const comm_request_t *request; /* what is to be done */
    ucx_algorithm_t algorithm;
    uint64_t number;
    uint32_t digest; /* of the call (watch_calls.c) */
    int index;       /* of this lane in its work */
    int lanes;       /* how many the work has */
    bool alive;      /* not yet done */
    bool broken;     /* a message failed: it waits for the fault to be told */
    bool idle;       /* it waits for ranks of this node: look again later */
    unsigned pending;
    ucx_request_t *posted; /* list of the pending ones */
    /* State of the algorithm: */
    int state;
    int mask;
    size_t at;  /* begin of the current segment, elements or bytes */
    size_t end; /* direct, ring of ranges: of the longest range */
    size_t slice;
    size_t stride; /* direct: from a lane's step to its next but lanes */
    void *scratch;
    int64_t *ranges; /* tree: first, held of each rank */
    int64_t range[2];
    comm_request_t inner; /* tree: the all-gather of ranges */
    ucx_span_t span;
};

enum { UCX_TAG_DATA = 1, UCX_TAG_NOTE = 2 };
#define UCX_TAG_KIND(kind) ((ucp_tag_t)(kind) << 60)
#define UCX_TAG_KIND_MASK UCX_TAG_KIND(15)

/* Post a message of [lane] to or from [rank]. Zero bytes are a message, too. */
void ucx_lane_send(ucx_lane_t *lane, int rank, const void *data, size_t bytes);
void ucx_lane_recv(ucx_lane_t *lane, int rank, void *data, size_t bytes);
void ucx_lane_cancel(ucx_lane_t *lane);

/* ---- algorithms: ucx_small.c, ucx_ring.c, ucx_direct.c, ucx_tree.c ------- */

bool ucx_doubling(ucx_group_t *group, ucx_lane_t *lane);  /* all-reduce */
bool ucx_barrier(ucx_group_t *group, ucx_lane_t *lane);   /* dissemination */
bool ucx_broadcast(ucx_group_t *group, ucx_lane_t *lane); /* binomial */
bool ucx_bruck(ucx_group_t *group, ucx_lane_t *lane);     /* all-gather */
bool ucx_ring_reduce(ucx_group_t *group, ucx_lane_t *lane);
bool ucx_ring_scatter(ucx_group_t *group, ucx_lane_t *lane); /* ranges */
bool ucx_ring_gather(ucx_group_t *group, ucx_lane_t *lane);  /* and ranges */
bool ucx_direct_reduce(ucx_group_t *group, ucx_lane_t *lane);
bool ucx_direct_scatter(ucx_group_t *group, ucx_lane_t *lane); /* ranges */
bool ucx_direct_gather(ucx_group_t *group, ucx_lane_t *lane);  /* ranges */
bool ucx_tree(ucx_group_t *group, ucx_lane_t *lane);

/* All-reduce over several nodes: see ucx_span.c, ucx_span_net.c. */
bool ucx_span(ucx_group_t *group, ucx_lane_t *lane);
/* The same of other memory (ucx_stage_net.c); has what it waits for come? */
bool ucx_stage_span(ucx_group_t *group, ucx_lane_t *lane);
bool ucx_stage_lane_came(const ucx_lane_t *lane);
/* How many lanes go through the segments of [work]. */
int ucx_stage_lanes(const struct ucx_work *work);
/* Their stage between nodes, for the segment in lane->span. */
void ucx_span_net_begin(ucx_lane_t *lane);
bool ucx_span_net(ucx_group_t *group, ucx_lane_t *lane);

/* Bytes of scratch of each lane in a group of [size] ranks: at least 4 KiB for
 * each rank. */
static inline size_t ucx_scratch_bytes(int size)
{
    size_t bytes = (size_t)size << 12;

    return bytes > UCX_SCRATCH_BYTES ? bytes : UCX_SCRATCH_BYTES;
}

/* Elements of the longest range that [what] is cut into. */
size_t ucx_longest_range(const ucx_group_t *group, const comm_request_t *what);

#endif
