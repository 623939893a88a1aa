/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Rings for large data: every rank sends to its right neighbour and receives
 * from its left one. All-reduce is cut into segments of one chunk per rank.
 * Chunk c travels from rank c once around, every rank adding its own part: so
 * the sum has one fixed order, x_c + x_(c+1) + ..., and is finished at one
 * rank; from there the result goes around again: the same bits everywhere.
 */
#include <string.h>

#include "comm/ucx_group.h"

typedef struct chunk {
    char *data;
    size_t count; /* elements; zero at the end of the last segment */
} chunk_t;

static int wrap(const ucx_group_t *group, int number)
{
    int size = group->base.size;

    return (number % size + size) % size;
}

/* Elements of a whole chunk: the data in equal parts if that is less. */
static size_t chunk_elements(const ucx_group_t *group,
                             const comm_request_t *what)
{
    size_t size = (size_t)group->base.size;
    size_t whole = UCX_CHUNK_BYTES / comm_type_bytes(what->type);
    size_t part = (what->count + size - 1) / size;

    return part < whole ? part : whole;
}

static chunk_t chunk_find(const ucx_group_t *group, const ucx_lane_t *lane,
                          int number)
{
    const comm_request_t *what = lane->request;
    size_t whole = chunk_elements(group, what);
    size_t begin = lane->at + (size_t)wrap(group, number) * whole;
    chunk_t chunk = {.data = what->data};

    if (begin < what->count) {
        chunk.data += begin * comm_type_bytes(what->type);
        chunk.count = what->count - begin < whole ? what->count - begin : whole;
    }
    return chunk;
}

static void chunk_exchange(ucx_group_t *group, ucx_lane_t *lane, chunk_t out,
                           chunk_t in, void *to)
{
    size_t width = comm_type_bytes(lane->request->type);

    if (in.count > 0)
        ucx_lane_recv(lane, wrap(group, group->base.rank - 1), to,
                      in.count * width);
    if (out.count > 0)
        ucx_lane_send(lane, wrap(group, group->base.rank + 1), out.data,
                      out.count * width);
}

/* lane->state counts the exchanges of a segment: 0 .. size-2 reduce, then
 * size-1 .. 2 size-3 hand the results around. */
bool ucx_ring_reduce(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, rank = group->base.rank;
    int turn = lane->state++;
    size_t segment = chunk_elements(group, what) * (size_t)size;
    chunk_t in;

    if (turn == 0)
        lane->at = (size_t)lane->index * segment;
    if (turn > 0 && turn < size) { /* the chunk of the turn before has come */
        in = chunk_find(group, lane, rank - turn);
        comm_reduce(in.data, lane->scratch, in.data, in.count, what->type,
                    what->op);
    }
    if (turn == 2 * size - 2) {
        lane->at += segment * (size_t)lane->lanes;
        lane->state = 1;
        turn = 0;
    }
    if (lane->at >= what->count)
        return false;
    if (turn < size - 1) {
        in = chunk_find(group, lane, rank - turn - 1);
        chunk_exchange(group, lane, chunk_find(group, lane, rank - turn), in,
                       lane->scratch);
    } else {
        turn -= size - 1;
        in = chunk_find(group, lane, rank - turn);
        chunk_exchange(group, lane, chunk_find(group, lane, rank + 1 - turn),
                       in, in.data);
    }
    return true;
}

/* Blocks go around in pieces of a chunk; lane->at is the piece's place in each
 * block, lane->state the turn. */
bool ucx_ring_gather(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, rank = group->base.rank;
    size_t step = UCX_CHUNK_BYTES, bytes;
    char *all = what->data;

    if (lane->state == size - 1) {
        lane->at += step * (size_t)lane->lanes;
        lane->state = 0;
    }
    if (lane->at >= what->count)
        return false;
    bytes = what->count - lane->at < step ? what->count - lane->at : step;
    all += lane->at;
    if (lane->state == 0) {
        const char *mine = (const char *)what->mine + lane->at;
        char *place = all + (size_t)rank * what->count;

        if (place != mine)
            memcpy(place, mine, bytes);
    }
    ucx_lane_recv(
        lane, wrap(group, rank - 1),
        all + (size_t)wrap(group, rank - lane->state - 1) * what->count, bytes);
    ucx_lane_send(lane, wrap(group, rank + 1),
                  all + (size_t)wrap(group, rank - lane->state) * what->count,
                  bytes);
    lane->state++;
    return true;
}
