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
 * Reduce-scatter is the first round, all-gather of ranges the second,
 * all-reduce both. Parts go in steps that fit the scratch, one slot per rank.
 */
#include "base/mem.h"
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
    bool cut = what->cuts != NULL;
    size_t begin =
        lane->at + (cut ? what->cuts[owner] : (size_t)owner * lane->slice);
    size_t end = cut ? what->cuts[owner + 1] : what->count;
    part_t part = {.data = (char *)what->data + begin * width};

    if (begin < end)
        part.count = end - begin < lane->slice ? end - begin : lane->slice;
    part.bytes = part.count * width;
    return part;
}

/* All-reduce: no cuts are given, so all are equal. */
static void direct_divide(const ucx_group_t *group, ucx_lane_t *lane)
{
    size_t size = (size_t)group->base.size;
    size_t part = (lane->end + size - 1) / size;

    if (part < lane->slice)
        lane->slice = part;
    lane->stride = lane->slice * size;
}

static void direct_begin(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    size_t slot = ucx_scratch_bytes(group->base.size) /
                  (size_t)group->base.size / MEM_ALIGN * MEM_ALIGN;

    lane->slice = slot / comm_type_bytes(what->type);
    lane->stride = lane->slice;
    lane->end = what->count;
    if (what->cuts != NULL)
        lane->end = ucx_longest_range(group, what);
    else /* the parts of a step lie side by side */
        direct_divide(group, lane);
    lane->at = lane->stride * (size_t)lane->index;
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

static const char *direct_part(const ucx_group_t *group, const ucx_lane_t *lane,
                               int rank, const part_t *mine)
{
    return rank == group->base.rank ? mine->data : direct_slot(lane, rank);
}

/* In rank order, into this rank's own part. */
static void direct_sum(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(what->type);
    part_t mine = part_of(lane, group->base.rank);
    comm_block_t block;

    for (size_t at = 0; at < mine.count; at += step) {
        size_t some = mine.count - at < step ? mine.count - at : step;
        size_t skip = at * width;

        comm_block_begin(&block, direct_part(group, lane, 0, &mine) + skip,
                         some, what->type);
        for (int rank = 1; rank < group->base.size; rank++)
            comm_block_add(&block, direct_part(group, lane, rank, &mine) + skip,
                           some, what->type, what->op);
        comm_block_end(&block, mine.data + skip, some, what->type);
    }
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
    lane->at += lane->stride * (size_t)lane->lanes;
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

bool ucx_direct_reduce(ucx_group_t *group, ucx_lane_t *lane)
{
    if (lane->state == BEGIN)
        direct_begin(group, lane);
    if (lane->state == SUM) {
        direct_sum(group, lane);
        direct_share(group, lane);
        lane->state = NEXT;
        return true;
    }
    if (lane->state == NEXT)
        direct_next(lane);
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
