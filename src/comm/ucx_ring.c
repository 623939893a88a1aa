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
    size_t count; /* elements or bytes; zero at the end */
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

/* To the right and from the left, [width] bytes an element. */
static void chunk_exchange(ucx_group_t *group, ucx_lane_t *lane, chunk_t out,
                           chunk_t in, void *to, size_t width)
{
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
    size_t width = comm_type_bytes(what->type);
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
                       lane->scratch, width);
    } else {
        turn -= size - 1;
        in = chunk_find(group, lane, rank - turn);
        chunk_exchange(group, lane, chunk_find(group, lane, rank + 1 - turn),
                       in, in.data, width);
    }
    return true;
}

/* ---- blocks and ranges --------------------------------------------------- */

/* The blocks of an all-gather and the ranges of a buffer that was cut go around
 * in pieces of a chunk; lane->at is the piece's place in each, in bytes. */

size_t ucx_longest_range(const ucx_group_t *group, const comm_request_t *what)
{
    size_t longest = 0;

    for (int rank = 0; rank < group->base.size; rank++) {
        size_t count = what->cuts[rank + 1] - what->cuts[rank];

        longest = count > longest ? count : longest;
    }
    return longest;
}

/* The current piece of the block or range of rank [number]; in bytes. */
static chunk_t piece_find(const ucx_group_t *group, const ucx_lane_t *lane,
                          int number)
{
    const comm_request_t *what = lane->request;
    size_t owner = (size_t)wrap(group, number);
    size_t begin = owner * what->count, bytes = what->count;
    chunk_t piece = {.data = what->data};

    if (what->cuts != NULL) {
        size_t width = comm_type_bytes(what->type);

        begin = what->cuts[owner] * width;
        bytes = what->cuts[owner + 1] * width - begin;
    }
    piece.data += begin + lane->at;
    if (lane->at < bytes)
        piece.count = bytes - lane->at < UCX_CHUNK_BYTES ? bytes - lane->at
                                                         : UCX_CHUNK_BYTES;
    return piece;
}

static size_t longest_bytes(const ucx_group_t *group,
                            const comm_request_t *what)
{
    return what->cuts == NULL
               ? what->count
               : ucx_longest_range(group, what) * comm_type_bytes(what->type);
}

/* The range of rank r starts at rank r + 1 and is summed on its way to r. */
bool ucx_ring_scatter(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = lane->request;
    int size = group->base.size, rank = group->base.rank;
    int turn = lane->state++;
    chunk_t in;

    if (turn == 0)
        lane->end = longest_bytes(group, what);
    if (turn > 0) { /* the piece of the turn before has come */
        in = piece_find(group, lane, rank - 1 - turn);
        comm_reduce(in.data, lane->scratch, in.data,
                    in.count / comm_type_bytes(what->type), what->type,
                    what->op);
    }
    if (turn == size - 1) {
        lane->at += UCX_CHUNK_BYTES * (size_t)lane->lanes;
        lane->state = 1;
        turn = 0;
    }
    if (lane->at >= lane->end)
        return false;
    in = piece_find(group, lane, rank - 2 - turn);
    chunk_exchange(group, lane, piece_find(group, lane, rank - 1 - turn), in,
                   lane->scratch, 1);
    return true;
}

/* This rank's block of an all-gather, unless it is there. */
static void block_place(const ucx_lane_t *lane, chunk_t mine)
{
    const char *from = lane->request->mine;

    if (from != NULL && from + lane->at != mine.data)
        memcpy(mine.data, from + lane->at, mine.count);
}

/* lane->state is the turn. */
bool ucx_ring_gather(ucx_group_t *group, ucx_lane_t *lane)
{
    int size = group->base.size, rank = group->base.rank;
    chunk_t in;

    lane->end = longest_bytes(group, lane->request);
    if (lane->state == size - 1) {
        lane->at += UCX_CHUNK_BYTES * (size_t)lane->lanes;
        lane->state = 0;
    }
    if (lane->at >= lane->end)
        return false;
    if (lane->state == 0)
        block_place(lane, piece_find(group, lane, rank));
    in = piece_find(group, lane, rank - lane->state - 1);
    chunk_exchange(group, lane, piece_find(group, lane, rank - lane->state), in,
                   in.data, 1);
    lane->state++;
    return true;
}
