/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Direct exchange: every member sends each part of its data directly to the
 * member that owns the part. An owner sums the parts that came, in the order of
 * the members, and sends the result directly to all members. So there are two
 * rounds for any number of members, and a sum does not depend on how the data
 * is divided. Each member sends as many bytes as in a ring, but more of them to
 * other nodes if a node has several ranks.
 *
 * Reduce-scatter is the first round, all-gather of ranges the second round, and
 * all-reduce is both. The data is sent in segments. The scratch has a slot for
 * each member, and the segment of a part fits into a slot.
 */
#include "base/check.h"
#include "base/mem.h"
#include "comm/ucx/ucx_task.h"

enum { BEGIN, SUM, NEXT };

typedef struct part {
    char *data;
    size_t count, bytes; /* 0: the part ends before this segment */
} part_t;

/* The current segment of the part that [owner] owns. */
static part_t part_of(const ucx_task_t *task, int owner)
{
    const comm_request_t *what = task->request;
    size_t width = comm_type_bytes(what->type);
    bool cut = what->cuts != NULL;
    size_t begin =
        task->at + (cut ? what->cuts[owner] : (size_t)owner * task->slice);
    size_t end = cut ? what->cuts[owner + 1] : what->count;
    part_t part = {.data = (char *)what->data + begin * width};

    if (begin < end)
        part.count = end - begin < task->slice ? end - begin : task->slice;
    part.bytes = part.count * width;
    return part;
}

/* For an all-reduce: divide each segment into parts of equal size. */
static void direct_divide(ucx_task_t *task)
{
    size_t size = (size_t)task->size;
    size_t part = (task->end + size - 1) / size;

    if (part < task->slice)
        task->slice = part;
    task->stride = task->slice * size;
}

static void direct_begin(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    size_t slot =
        task->scratch_bytes / (size_t)task->size / MEM_ALIGN * MEM_ALIGN;

    task->slice = slot / comm_type_bytes(what->type);
    task->stride = task->slice;
    task->end = what->count;
    if (what->cuts != NULL)
        task->end = ucx_task_longest(task);
    else
        direct_divide(task);
    task->at = task->stride * (size_t)task->index;
    check(task->slice * (size_t)task->size * comm_type_bytes(what->type) <=
              task->scratch_bytes,
          "%d slots of %zu elements in %zu bytes of scratch", task->size,
          task->slice, task->scratch_bytes);
}

static char *direct_slot(const ucx_task_t *task, int rank)
{
    return (char *)task->scratch +
           (size_t)rank * task->slice * comm_type_bytes(task->request->type);
}

/* The first round: post the parts of the current segment to their owners. */
static void parts_scatter(ucx_task_t *task)
{
    int size = task->size, rank = task->rank;
    part_t mine = part_of(task, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        int to = (rank + distance) % size;
        part_t theirs = part_of(task, to);

        if (mine.count > 0)
            ucx_task_recv(task, from, direct_slot(task, from), mine.bytes);
        if (theirs.count > 0)
            ucx_task_send(task, to, theirs.data, theirs.bytes);
    }
}

/* The contribution of [rank] to the part [mine] of this member. */
static const char *direct_part(const ucx_task_t *task, int rank,
                               const part_t *mine)
{
    return rank == task->rank ? mine->data : direct_slot(task, rank);
}

/* Sum this member's part, in the order of the members. */
static void part_sum(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(what->type);
    part_t mine = part_of(task, task->rank);
    comm_block_t block;

    for (size_t at = 0; at < mine.count; at += step) {
        size_t some = mine.count - at < step ? mine.count - at : step;
        size_t skip = at * width;

        comm_block_begin(&block, direct_part(task, 0, &mine) + skip, some,
                         what->type);
        for (int rank = 1; rank < task->size; rank++)
            comm_block_add(&block, direct_part(task, rank, &mine) + skip, some,
                           what->type, what->op);
        comm_block_end(&block, mine.data + skip, some, what->type);
    }
}

/* The second round: post this member's part to all others. */
static void parts_gather(ucx_task_t *task)
{
    int size = task->size, rank = task->rank;
    part_t mine = part_of(task, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        int to = (rank + distance) % size;
        part_t theirs = part_of(task, from);

        if (theirs.count > 0)
            ucx_task_recv(task, from, theirs.data, theirs.bytes);
        if (mine.count > 0)
            ucx_task_send(task, to, mine.data, mine.bytes);
    }
}

static void direct_next(ucx_task_t *task)
{
    task->at += task->stride * (size_t)task->lanes;
}

/* The first round of the current segment; false: no segment is left. */
static bool scatter_round(ucx_task_t *task)
{
    if (task->at >= task->end)
        return false;
    parts_scatter(task);
    task->state = SUM;
    return true;
}

/* The second round of the current segment; false: no segment is left. */
static bool gather_round(ucx_task_t *task)
{
    if (task->at >= task->end)
        return false;
    parts_gather(task);
    task->state = NEXT;
    return true;
}

bool ucx_direct_scatter(ucx_task_t *task)
{
    if (task->state == BEGIN) {
        direct_begin(task);
    } else {
        part_sum(task);
        direct_next(task);
    }
    return scatter_round(task);
}

bool ucx_direct_reduce(ucx_task_t *task)
{
    switch (task->state) {
    case BEGIN:
        direct_begin(task);
        return scatter_round(task);
    case SUM:
        part_sum(task);
        return gather_round(task);
    default:
        direct_next(task);
        return scatter_round(task);
    }
}

bool ucx_direct_gather(ucx_task_t *task)
{
    if (task->state == BEGIN)
        direct_begin(task);
    else
        direct_next(task);
    return gather_round(task);
}
