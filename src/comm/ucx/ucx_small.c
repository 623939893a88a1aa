/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Algorithms of few rounds: recursive doubling, the dissemination barrier,
 * binomial broadcast and Bruck's all-gather (Bruck et al., "Efficient
 * algorithms for all-to-all communications", TPDS 1997).
 */
#include <string.h>

#include "base/check.h"
#include "comm/ucx/ucx_fold.h"
#include "comm/ucx/ucx_task.h"

/* ---- all-reduce by recursive doubling ------------------------------------ */

/* Exchange with the member at distance task->mask, or go to the end. */
static bool doubling_meet(ucx_task_t *task, const ucx_fold_t *fold)
{
    size_t bytes = comm_request_bytes(task->request);
    int partner;

    if (task->mask >= fold->power)
        return ucx_fold_finish(task, fold);
    partner = ucx_fold_member(fold, fold->number ^ task->mask);
    ucx_task_recv(task, partner, task->scratch, bytes);
    ucx_task_send(task, partner, task->request->data, bytes);
    task->state = FOLD_MET;
    return true;
}

/*
 * Each member exchanges its data with the members at distances 1, 2, 4 ... in
 * turn. After each exchange all members of an aligned block have the same bits,
 * because both partners compute (lower block) op (upper block).
 */
bool ucx_doubling(ucx_task_t *task)
{
    ucx_fold_t fold = ucx_fold_of(task);
    size_t count = task->request->count;

    switch (task->state) {
    case FOLD_BEGIN:
        task->mask = 1;
        return ucx_fold_begin(task, &fold) || doubling_meet(task, &fold);
    case FOLD_TAKEN:
        ucx_fold_combine(task, 0, count, true);
        return doubling_meet(task, &fold);
    case FOLD_MET:
        ucx_fold_combine(task, 0, count, (fold.number & task->mask) != 0);
        task->mask *= 2;
        return doubling_meet(task, &fold);
    case FOLD_AWAIT:
        ucx_fold_await(task);
        return true;
    default:
        return false;
    }
}

/* ---- barrier ------------------------------------------------------------- */

bool ucx_barrier(ucx_task_t *task)
{
    int size = task->size, rank = task->rank;

    task->mask = task->mask == 0 ? 1 : task->mask * 2;
    if (task->mask >= size)
        return false;
    ucx_task_recv(task, (rank - task->mask + size) % size, NULL, 0);
    ucx_task_send(task, (rank + task->mask) % size, NULL, 0);
    return true;
}

/* ---- broadcast ----------------------------------------------------------- */

/* Send a segment to all children of member [number], counted from the root; the
 * farthest child first. Each child answers the first segment: so if two members
 * both call themselves the root, they wait for each other, and that is found.
 */
static void broadcast_send(ucx_task_t *task, int number, int top, char *data,
                           size_t bytes)
{
    int size = task->size;

    for (int mask = top; mask > 0; mask /= 2) {
        int child = (task->rank + mask) % size;

        if (number + mask >= size)
            continue;
        ucx_task_send(task, child, data, bytes);
        if (task->at == 0)
            ucx_task_recv(task, child, NULL, 0);
    }
}

/* Members are numbered from the root. Number n receives the data from number n
 * with its lowest bit cleared, and sends it to n + mask for each power of two
 * below that bit. The data goes in segments: a child forwards one segment while
 * it receives the next one in another lane. */
bool ucx_broadcast(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    int size = task->size, mask = 1, parent;
    int number = (task->rank - what->root + size) % size;
    size_t step = COMM_CHUNK_BYTES, left;
    char *data;

    if (task->state == 2) { /* the segment is sent */
        task->at += step * (size_t)task->lanes;
        task->state = 0;
    }
    if (task->at >= what->count)
        return false;
    data = (char *)what->data + task->at;
    left = what->count - task->at < step ? what->count - task->at : step;
    while (mask < size && !(number & mask))
        mask *= 2;
    parent = (task->rank - mask + size) % size;
    if (task->state == 0 && number != 0) {
        ucx_task_recv(task, parent, data, left);
        task->state = 1;
        return true;
    }
    broadcast_send(task, number, mask / 2, data, left);
    if (task->at == 0 && number != 0)
        ucx_task_send(task, parent, NULL, 0);
    task->state = 2;
    return true;
}

/* ---- all-gather ---------------------------------------------------------- */

/* Block i of the scratch is that of member rank + i. Before the round of
 * distance m the scratch has blocks 0 .. m-1, and after it twice as many. */
bool ucx_bruck(ucx_task_t *task)
{
    const comm_request_t *what = task->request;
    int size = task->size, rank = task->rank;
    size_t bytes = what->count;
    char *blocks = task->scratch;
    int count;

    check(bytes * (size_t)size <= task->scratch_bytes,
          "%d blocks of %zu bytes in %zu bytes of scratch", size, bytes,
          task->scratch_bytes);
    if (task->mask == 0)
        memcpy(blocks, what->mine, bytes);
    task->mask = task->mask == 0 ? 1 : task->mask * 2;
    if (task->mask < size) {
        count = size - task->mask < task->mask ? size - task->mask : task->mask;
        ucx_task_recv(task, (rank + task->mask) % size,
                      blocks + (size_t)task->mask * bytes,
                      (size_t)count * bytes);
        ucx_task_send(task, (rank - task->mask + size) % size, blocks,
                      (size_t)count * bytes);
        return true;
    }
    for (int i = 0; i < size; i++)
        memcpy((char *)what->data + (size_t)((rank + i) % size) * bytes,
               blocks + (size_t)i * bytes, bytes);
    return false;
}
