/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Algorithms of few rounds: recursive doubling, the dissemination barrier,
 * binomial broadcast and Bruck's all-gather (Bruck et al., "Efficient
 * algorithms for all-to-all communications", TPDS 1997). Each is written as the
 * rounds it posts; see ucx_lane_t.
 */
#include <string.h>

#include "comm/ucx_group.h"

/* ---- all-reduce by recursive doubling ------------------------------------ */

/*
 * Ranks beyond the largest power of two are folded: of the first 2 * rest
 * ranks, each even one gives its data to the next odd one and gets the result
 * in the end. The others, renumbered 0 .. power-1, exchange with the partner at
 * distance 1, 2, 4 ... After each exchange all ranks of an aligned block hold
 * the same bits, because both partners compute (lower block) op (upper block).
 */
enum { FOLD, FOLD_TAKEN, MEET, MET, AWAIT_RESULT, FINISHED };

typedef struct doubling {
    int power, rest; /* size = power + rest */
    int number;      /* of this rank among the power; -1: folded */
} doubling_t;

static doubling_t doubling_of(const ucx_group_t *group)
{
    doubling_t d = {.power = 1};

    while (d.power * 2 <= group->base.size)
        d.power *= 2;
    d.rest = group->base.size - d.power;
    if (group->base.rank >= 2 * d.rest)
        d.number = group->base.rank - d.rest;
    else
        d.number = group->base.rank % 2 ? group->base.rank / 2 : -1;
    return d;
}

static int doubling_rank(const doubling_t *d, int number)
{
    return number < d->rest ? 2 * number + 1 : number + d->rest;
}

static void doubling_combine(ucx_lane_t *lane, bool theirs_lower)
{
    const comm_request_t *what = lane->request;
    void *mine = what->data, *theirs = lane->scratch;

    comm_reduce(mine, theirs_lower ? theirs : mine,
                theirs_lower ? mine : theirs, what->count, what->type,
                what->op);
}

/* Exchange at distance lane->mask, or go to the end. */
static bool doubling_meet(ucx_group_t *group, ucx_lane_t *lane, doubling_t d)
{
    void *data = lane->request->data;
    size_t bytes = comm_request_bytes(lane->request);
    int rank = group->base.rank;

    if (lane->mask < d.power) {
        int partner = doubling_rank(&d, d.number ^ lane->mask);

        ucx_lane_recv(lane, partner, lane->scratch, bytes);
        ucx_lane_send(lane, partner, data, bytes);
        lane->state = MET;
        return true;
    }
    if (rank < 2 * d.rest)
        ucx_lane_send(lane, rank - 1, data, bytes);
    lane->state = FINISHED;
    return rank < 2 * d.rest;
}

bool ucx_doubling(ucx_group_t *group, ucx_lane_t *lane)
{
    doubling_t d = doubling_of(group);
    void *data = lane->request->data;
    size_t bytes = comm_request_bytes(lane->request);
    int rank = group->base.rank;

    switch (lane->state) {
    case FOLD:
        lane->mask = 1;
        if (rank >= 2 * d.rest)
            return doubling_meet(group, lane, d);
        if (d.number < 0)
            ucx_lane_send(lane, rank + 1, data, bytes);
        else
            ucx_lane_recv(lane, rank - 1, lane->scratch, bytes);
        lane->state = d.number < 0 ? AWAIT_RESULT : FOLD_TAKEN;
        return true;
    case FOLD_TAKEN:
        doubling_combine(lane, true);
        return doubling_meet(group, lane, d);
    case MET:
        doubling_combine(lane, (d.number & lane->mask) != 0);
        lane->mask *= 2;
        return doubling_meet(group, lane, d);
    case AWAIT_RESULT:
        ucx_lane_recv(lane, rank + 1, data, bytes);
        lane->state = FINISHED;
        return true;
    default:
        return false;
    }
}

/* ---- barrier ------------------------------------------------------------- */

bool ucx_barrier(ucx_group_t *group, ucx_lane_t *lane)
{
    int size = group->base.size, rank = group->base.rank;

    lane->mask = lane->mask == 0 ? 1 : lane->mask * 2;
    if (lane->mask >= size)
        return false;
    ucx_lane_recv(lane, (rank - lane->mask + size) % size, NULL, 0);
    ucx_lane_send(lane, (rank + lane->mask) % size, NULL, 0);
    return true;
}

/* ---- broadcast ----------------------------------------------------------- */

/* Post the sends of a segment to all children, the farthest first. With the
 * first segment each child tells that it has come: two ranks that both take
 * themselves for the root then wait for each other, and are told so. */
static void broadcast_send(ucx_group_t *group, ucx_lane_t *lane, int number,
                           int top, char *data, size_t bytes)
{
    int size = group->base.size;

    for (int mask = top; mask > 0; mask /= 2) {
        int child = (group->base.rank + mask) % size;

        if (number + mask >= size)
            continue;
        ucx_lane_send(lane, child, data, bytes);
        if (lane->at == 0)
            ucx_lane_recv(lane, child, NULL, 0);
    }
}

/* Ranks are numbered from the root; number n gets its data from n with its
 * lowest bit cleared, and gives it to n + mask for each mask below that bit. In
 * segments: a child forwards one while it receives the next in another lane. */
bool ucx_broadcast(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, mask = 1, parent;
    int number = (group->base.rank - what->root + size) % size;
    size_t step = UCX_CHUNK_BYTES, left;
    char *data;

    if (lane->state == 2) { /* the segment is sent */
        lane->at += step * (size_t)lane->lanes;
        lane->state = 0;
    }
    if (lane->at >= what->count)
        return false;
    data = (char *)what->data + lane->at;
    left = what->count - lane->at < step ? what->count - lane->at : step;
    while (mask < size && !(number & mask))
        mask *= 2;
    parent = (group->base.rank - mask + size) % size;
    if (lane->state == 0 && number != 0) {
        ucx_lane_recv(lane, parent, data, left);
        lane->state = 1;
        return true;
    }
    broadcast_send(group, lane, number, mask / 2, data, left);
    if (lane->at == 0 && number != 0)
        ucx_lane_send(lane, parent, NULL, 0);
    lane->state = 2;
    return true;
}

/* ---- all-gather ---------------------------------------------------------- */

/* In the scratch, block i is that of rank + i. Before the round of distance m
 * it holds blocks 0 .. m-1, then twice as many. */
bool ucx_bruck(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, rank = group->base.rank;
    size_t bytes = what->count;
    char *blocks = lane->scratch;
    int count;

    if (lane->mask == 0)
        memcpy(blocks, what->mine, bytes);
    lane->mask = lane->mask == 0 ? 1 : lane->mask * 2;
    if (lane->mask < size) {
        count = size - lane->mask < lane->mask ? size - lane->mask : lane->mask;
        ucx_lane_recv(lane, (rank + lane->mask) % size,
                      blocks + (size_t)lane->mask * bytes,
                      (size_t)count * bytes);
        ucx_lane_send(lane, (rank - lane->mask + size) % size, blocks,
                      (size_t)count * bytes);
        return true;
    }
    for (int i = 0; i < size; i++)
        memcpy((char *)what->data + (size_t)((rank + i) % size) * bytes,
               blocks + (size_t)i * bytes, bytes);
    return false;
}
