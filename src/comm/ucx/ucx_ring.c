/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Rings, for large data. Every member sends to its right neighbour (rank + 1)
 * and receives from its left neighbour.
 *
 * Reduce-scatter: the data is divided into one chunk for each member. Chunk c
 * starts at member c and goes once around the ring; every member adds its own
 * contribution. So the order of the sum is fixed, x_c + x_(c+1) + ..., and the
 * sum is complete at member c - 1, the owner of the chunk. All-gather: the
 * chunk goes around once more, and every member stores it. An all-reduce is
 * both, for each segment of the data. One member computes an element, so all
 * members get the same bits.
 */
#include <string.h>

#include "base/check.h"
#include "comm/ucx/ucx_task.h"

typedef struct chunk {
    char *data;
    size_t bytes; /* 0: the chunk is behind the end of the data */
} chunk_t;

/* Return chunk [number], 0 .. size-1, of the current segment. */
typedef chunk_t (*layout_t)(const ucx_task_t *task, int number);

/* ---- rounds -------------------------------------------------------------- */

static int wrap(const ucx_task_t *task, int number)
{
    return (number % task->size + task->size) % task->size;
}

/* Send [out] to the right, and receive as many bytes as [in] has into [to]. */
static void chunk_exchange(ucx_task_t *task, chunk_t out, chunk_t in, void *to)
{
    check(to != task->scratch || in.bytes <= task->scratch_bytes,
          "a chunk of %zu bytes in %zu bytes of scratch", in.bytes,
          task->scratch_bytes);
    if (in.bytes > 0)
        ucx_task_recv(task, wrap(task, task->rank - 1), to, in.bytes);
    if (out.bytes > 0)
        ucx_task_send(task, wrap(task, task->rank + 1), out.data, out.bytes);
}

/* Post round [round] of a reduce-scatter, 0 .. size-2. */
static void scatter_round(ucx_task_t *task, layout_t layout, int round)
{
    chunk_t in = layout(task, wrap(task, task->rank - round - 1));

    chunk_exchange(task, layout(task, wrap(task, task->rank - round)), in,
                   task->scratch);
}

/* After round [round] - 1: add this member's contribution to the chunk that has
 * come. */
static void scatter_add(ucx_task_t *task, layout_t layout, int round)
{
    const comm_request_t *what = task->request;
    chunk_t in = layout(task, wrap(task, task->rank - round));

    comm_reduce(in.data, task->scratch, in.data,
                in.bytes / comm_type_bytes(what->type), what->type, what->op);
}

/* Post round [round] of an all-gather, 0 .. size-2. */
static void gather_round(ucx_task_t *task, layout_t layout, int round)
{
    chunk_t in = layout(task, wrap(task, task->rank - round));

    chunk_exchange(task, layout(task, wrap(task, task->rank + 1 - round)), in,
                   in.data);
}

/* Post round [round] of an all-reduce, 0 .. 2 size - 3. */
static void reduce_round(ucx_task_t *task, layout_t layout, int round)
{
    if (round < task->size - 1)
        scatter_round(task, layout, round);
    else
        gather_round(task, layout, round - task->size + 1);
}

/* ---- all-reduce ---------------------------------------------------------- */

/* Elements of a chunk. If the data is short, each member has an equal part. */
static size_t chunk_elements(const ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    size_t size = (size_t)task->size;
    size_t whole = COMM_CHUNK_BYTES / comm_type_bytes(what->type);
    size_t part = (what->count + size - 1) / size;

    return part < whole ? part : whole;
}

static chunk_t segment_chunk(const ucx_task_t *task, int number)
{
    const comm_request_t *what = task->request;
    size_t width = comm_type_bytes(what->type), whole = chunk_elements(task);
    size_t begin = task->at + (size_t)number * whole;
    chunk_t chunk = {.data = what->data};

    if (begin < what->count) {
        chunk.data += begin * width;
        chunk.bytes =
            (what->count - begin < whole ? what->count - begin : whole) * width;
    }
    return chunk;
}

/* task->state is the number of rounds in this segment. */
bool ucx_ring_reduce(ucx_task_t *task)
{
    int size = task->size, round = task->state++;
    size_t segment = chunk_elements(task) * (size_t)size;

    if (round == 0)
        task->at = (size_t)task->index * segment;
    if (round > 0 && round < size)
        scatter_add(task, segment_chunk, round);
    if (round == 2 * size - 2) {
        task->at += segment * (size_t)task->lanes;
        task->state = 1;
        round = 0;
    }
    if (task->at >= task->request->count)
        return false;
    reduce_round(task, segment_chunk, round);
    return true;
}

/* The whole data is one segment, divided into equal chunks. */
static chunk_t even_chunk(const ucx_task_t *task, int number)
{
    const comm_request_t *what = task->request;
    size_t size = (size_t)task->size, width = comm_type_bytes(what->type);
    size_t begin = what->count * (size_t)number / size;
    size_t end = what->count * (size_t)(number + 1) / size;

    return (chunk_t){.data = (char *)what->data + begin * width,
                     .bytes = (end - begin) * width};
}

bool ucx_ring_even(ucx_task_t *task)
{
    int round = task->state++;

    if (round > 0 && round < task->size)
        scatter_add(task, even_chunk, round);
    if (round == 2 * task->size - 2)
        return false;
    reduce_round(task, even_chunk, round);
    return true;
}

/* ---- blocks and ranges --------------------------------------------------- */

/* The blocks of an all-gather and the ranges of a reduce-scatter go around in
 * pieces of at most COMM_CHUNK_BYTES. The current piece of each block or range
 * begins at its byte task->at. */

/* The current piece of the block or range whose owner is [number] - 1. */
static chunk_t piece_chunk(const ucx_task_t *task, int number)
{
    const comm_request_t *what = task->request;
    size_t owner = (size_t)wrap(task, number - 1);
    size_t begin = owner * what->count, bytes = what->count;
    chunk_t piece = {.data = what->data};

    if (what->cuts != NULL) {
        size_t width = comm_type_bytes(what->type);

        begin = what->cuts[owner] * width;
        bytes = what->cuts[owner + 1] * width - begin;
    }
    piece.data += begin + task->at;
    if (task->at < bytes)
        piece.bytes = bytes - task->at < COMM_CHUNK_BYTES ? bytes - task->at
                                                          : COMM_CHUNK_BYTES;
    return piece;
}

/* Bytes of the longest block or range. */
static size_t longest_bytes(const ucx_task_t *task)
{
    const comm_request_t *what = task->request;

    return what->cuts == NULL
               ? what->count
               : ucx_task_longest(task) * comm_type_bytes(what->type);
}

bool ucx_ring_scatter(ucx_task_t *task)
{
    int round = task->state++;

    if (round == 0)
        task->end = longest_bytes(task);
    if (round > 0)
        scatter_add(task, piece_chunk, round);
    if (round == task->size - 1) {
        task->at += COMM_CHUNK_BYTES * (size_t)task->lanes;
        task->state = 1;
        round = 0;
    }
    if (task->at >= task->end)
        return false;
    scatter_round(task, piece_chunk, round);
    return true;
}

/* Copy the current piece of this member's block of an all-gather to its place,
 * unless it is there. */
static void block_place(const ucx_task_t *task)
{
    const char *from = task->request->mine;
    chunk_t mine = piece_chunk(task, task->rank + 1);

    if (from != NULL && from + task->at != mine.data)
        memcpy(mine.data, from + task->at, mine.bytes);
}

/* task->state is the next round of this piece. */
bool ucx_ring_gather(ucx_task_t *task)
{
    task->end = longest_bytes(task);
    if (task->state == task->size - 1) {
        task->at += COMM_CHUNK_BYTES * (size_t)task->lanes;
        task->state = 0;
    }
    if (task->at >= task->end)
        return false;
    if (task->state == 0)
        block_place(task);
    gather_round(task, piece_chunk, task->state++);
    return true;
}
