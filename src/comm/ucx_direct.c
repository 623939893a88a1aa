/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Exchanges without detours: every rank sends each part of its data straight to
 * the rank that owns it, owners sum what has come in rank order, and send the
 * result straight to all. Two rounds, whatever the number of ranks, and sums
 * that depend neither on where the data is cut nor on the place of an element.
 * Each rank sends and receives the same number of bytes as in a ring, but more
 * of them between nodes when these hold several ranks.
 *
 * Reduce-scatter is the first round, all-gather of ranges the second. Parts go
 * in steps that fit the scratch, one slot per rank.
 */
#include "comm/ucx_group.h"

enum { BEGIN, SUM, NEXT };

typedef struct part {
    char *data;
    size_t count, bytes; /* zero: it has ended before this step */
} part_t;

/* What [owner] owns of the current step. */
static part_t part_of(const ucx_lane_t *lane, int owner)
{
    const comm_request_t *what = lane->request;
    size_t width = comm_type_bytes(what->type);
    size_t begin = what->cuts[owner] + lane->at, end = what->cuts[owner + 1];
    part_t part = {.data = (char *)what->data + begin * width};

    if (begin < end)
        part.count = end - begin < lane->slice ? end - begin : lane->slice;
    part.bytes = part.count * width;
    return part;
}

static void direct_begin(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    size_t slot = ucx_scratch_bytes(group->base.size) /
                  (size_t)group->base.size / MEM_ALIGN * MEM_ALIGN;

    lane->slice = slot / comm_type_bytes(what->type);
    lane->at = lane->slice * (size_t)lane->index;
    lane->end = ucx_longest_range(group, what);
}

static char *direct_slot(const ucx_lane_t *lane, int rank)
{
    return (char *)lane->scratch +
           (size_t)rank * lane->slice * comm_type_bytes(lane->request->type);
}

static void direct_scatter(ucx_group_t *group, ucx_lane_t *lane)
{
    int size = group->base.size, rank = group->base.rank;
    part_t mine = part_of(lane, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        int to = (rank + distance) % size;
        part_t theirs = part_of(lane, to);

        if (mine.count > 0)
            ucx_lane_recv(lane, from, direct_slot(lane, from), mine.bytes);
        if (theirs.count > 0)
            ucx_lane_send(lane, to, theirs.data, theirs.bytes);
    }
}

/* In rank order; the last operation writes this rank's own part, which has been
 * read by then. */
static void direct_sum(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, rank = group->base.rank;
    part_t mine = part_of(lane, rank);
    char *sum = rank == 0 ? mine.data : direct_slot(lane, 0);

    for (int i = 1; i < size; i++)
        comm_reduce(i == size - 1 ? mine.data : sum, sum,
                    i == rank ? mine.data : direct_slot(lane, i), mine.count,
                    what->type, what->op);
}

static void direct_share(ucx_group_t *group, ucx_lane_t *lane)
{
    int size = group->base.size, rank = group->base.rank;
    part_t mine = part_of(lane, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        int to = (rank + distance) % size;
        part_t theirs = part_of(lane, from);

        if (theirs.count > 0)
            ucx_lane_recv(lane, from, theirs.data, theirs.bytes);
        if (mine.count > 0)
            ucx_lane_send(lane, to, mine.data, mine.bytes);
    }
}

static void direct_next(ucx_lane_t *lane)
{
    lane->at += lane->slice * (size_t)lane->lanes;
}

bool ucx_direct_scatter(ucx_group_t *group, ucx_lane_t *lane)
{
    if (lane->state == BEGIN) {
        direct_begin(group, lane);
    } else {
        direct_sum(group, lane);
        direct_next(lane);
    }
    if (lane->at >= lane->end)
        return false;
    direct_scatter(group, lane);
    lane->state = SUM;
    return true;
}

bool ucx_direct_gather(ucx_group_t *group, ucx_lane_t *lane)
{
    if (lane->state == BEGIN)
        direct_begin(group, lane);
    else
        direct_next(lane);
    if (lane->at >= lane->end)
        return false;
    direct_share(group, lane);
    lane->state = NEXT;
    return true;
}
