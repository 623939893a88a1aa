/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The all-reduce along a tree. The sum does not depend on which rank has which
 * subtrees, but one rank must get all subtrees of an element. So the elements
 * are divided into slices, one for each rank, its owner. Every rank sends the
 * slices of each of its views to their owners. An owner sums the slices along
 * the tree and sends the result to all ranks. So a rank sends (views + 1) times
 * the data, and needs scratch for its slice of all views of the group. The data
 * goes in segments whose slices fit into the scratch.
 *
 * Before that, an all-gather of 16 bytes tells all ranks who has which leaves.
 */
#include <string.h>

#include "base/check.h"
#include "comm/ucx/ucx_task.h"

enum { ASK, GATHER, SCATTER, FOLD, NEXT };

typedef struct slice {
    size_t offset, bytes; /* of the slice, in every view and in data */
    size_t count;
} slice_t;

/* The slice of [owner] in the current segment. */
static slice_t slice_of(const ucx_task_t *task, int owner)
{
    const comm_request_t *what = task->request;
    size_t width = comm_type_bytes(what->type);
    size_t begin = task->at + (size_t)owner * task->slice;
    slice_t slice = {0};

    if (begin >= what->count)
        return slice;
    slice.count =
        what->count - begin < task->slice ? what->count - begin : task->slice;
    slice.offset = begin * width;
    slice.bytes = slice.count * width;
    return slice;
}

/* Number of views of [rank]. */
static int views_of(const ucx_task_t *task, int rank)
{
    return comm_tree_views(task->ranges[2 * rank], task->ranges[2 * rank + 1],
                           task->request->leaves);
}

/* Check the ranges that were gathered, and choose the size of the slices.
 * False: the ranges are wrong, and the group fails. */
static bool tree_plan(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    size_t ranks = (size_t)task->size, views = 0;
    size_t part = (what->count + ranks - 1) / ranks;
    err_t fault = ERR_INIT;

    if (comm_tree_check(task->ranges, task->size, what->leaves, task->number,
                        &fault) != ERR_OK) {
        task->ops->fail(task->context, &fault);
        return false;
    }
    for (int rank = 0; rank < task->size; rank++)
        views += (size_t)views_of(task, rank);
    /* There are leaves (comm_request.c), so somebody has a view of them. */
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    task->slice = task->scratch_bytes / views / comm_type_bytes(what->type);
    check(task->slice > 0, "%zu views leave no scratch for a slice", views);
    if (task->slice > part)
        task->slice = part;
    return true;
}

/* Post the slices of the current segment: to their owners, and to this rank. */
static void tree_scatter(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    int size = task->size, rank = task->rank;
    slice_t mine = slice_of(task, rank);
    char *place = task->scratch;

    for (int peer = 0; peer < size && mine.count > 0; peer++)
        for (int i = peer == rank ? 0 : views_of(task, peer); i > 0; i--) {
            ucx_task_recv(task, peer, place, mine.bytes);
            place += mine.bytes;
        }
    check(place <= (char *)task->scratch + task->scratch_bytes,
          "slices of %zu bytes end behind the scratch", mine.bytes);
    for (int distance = 1; distance < size; distance++) {
        int owner = (rank + distance) % size;
        slice_t slice = slice_of(task, owner);

        for (int i = 0; slice.count > 0 && i < views_of(task, rank); i++)
            ucx_task_send(task, owner, (char *)what->views[i] + slice.offset,
                          slice.bytes);
    }
}

/* Sum this rank's slice along the tree. The result goes to [data]. */
static void tree_fold(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    slice_t mine = slice_of(task, task->rank);
    char *place = task->scratch;
    comm_fold_t fold;

    if (mine.count == 0)
        return;
    comm_fold_begin(&fold, what->leaves, mine.count, what->type);
    for (int rank = 0; rank < task->size; rank++) {
        int64_t at = task->ranges[2 * rank];
        int64_t end = at + task->ranges[2 * rank + 1], next;

        if (rank == task->rank)
            comm_fold_push_views(&fold, at, end - at, what->views, mine.offset);
        for (; rank != task->rank && at < end; at = next) {
            next = comm_tree_view_end(at, end, what->leaves);
            comm_fold_push(&fold, at, next, place);
            place += mine.bytes;
        }
    }
    memmove((char *)what->data + mine.offset, comm_fold_total(&fold),
            mine.bytes);
}

/* Post the result of this rank's slice to all ranks. */
static void tree_share(ucx_task_t *task)
{
    char *data = task->request->data;
    int size = task->size, rank = task->rank;
    slice_t mine = slice_of(task, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        slice_t slice = slice_of(task, from);

        if (slice.count > 0)
            ucx_task_recv(task, from, data + slice.offset, slice.bytes);
        if (mine.count > 0)
            ucx_task_send(task, (rank + distance) % size, data + mine.offset,
                          mine.bytes);
    }
}

/* Begin the all-gather of the ranges of leaves. */
static void tree_ask(ucx_task_t *task)
{
    const comm_request_t *what = task->request;

    task->range[0] = what->first;
    task->range[1] = what->held;
    task->inner = (comm_request_t){.kind = COMM_ALLGATHER,
                                   .data = task->ranges,
                                   .count = sizeof task->range,
                                   .mine = task->range};
    *task->part = *task;
    task->part->request = &task->inner;
    task->part->part = NULL;
    ucx_task_begin(task->part);
}

bool ucx_tree(ucx_task_t *task)
{
    switch (task->state) {
    case ASK:
        tree_ask(task);
        task->state = GATHER;
        return true;
    case GATHER:
        if (ucx_bruck(task->part))
            return true;
        task->state = SCATTER;
        return tree_plan(task);
    case SCATTER:
        tree_scatter(task);
        task->state = FOLD;
        return true;
    case FOLD:
        tree_fold(task);
        tree_share(task);
        task->state = NEXT;
        return true;
    default:
        task->at += task->slice * (size_t)task->size;
        task->state = SCATTER;
        return task->at < task->request->count;
    }
}
