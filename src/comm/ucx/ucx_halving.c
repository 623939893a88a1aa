/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Rabenseifner's all-reduce (Thakur, Rabenseifner, Gropp, "Optimization of
 * collective communication operations in MPICH", IJHPCA 2005). Members are
 * folded to a power of two (ucx_fold.h). Then they exchange halves of the data
 * at distances power/2 ... 1, until each has one part of the total, and gather
 * the parts at distances 1 ... power/2. One member computes an element, so all
 * get the same bits.
 */
#include "base/check.h"
#include "comm/ucx/ucx_fold.h"
#include "comm/ucx/ucx_task.h"

typedef struct range { /* a range of elements */
    size_t begin, end;
} range_t;

/* The range of the member that has [number], after it has halved at all
 * distances down to [mask]. */
static range_t range_of(const ucx_task_t *task, const ucx_fold_t *fold,
                        int number, int mask)
{
    range_t range = {.begin = 0, .end = task->request->count};

    for (int distance = fold->power / 2; distance >= mask && distance > 0;
         distance /= 2) {
        size_t middle = range.begin + (range.end - range.begin) / 2;

        if (number & distance)
            range.begin = middle;
        else
            range.end = middle;
    }
    return range;
}

static char *place_of(const ucx_task_t *task, range_t range)
{
    return (char *)task->request->data +
           range.begin * comm_type_bytes(task->request->type);
}

static size_t bytes_of(const ucx_task_t *task, range_t range)
{
    return (range.end - range.begin) * comm_type_bytes(task->request->type);
}

/* Exchange parts with the member at distance task->mask, or go to the end. */
static bool gather_next(ucx_task_t *task, const ucx_fold_t *fold)
{
    int partner = fold->number ^ task->mask;
    int member = ucx_fold_member(fold, partner);
    range_t theirs, mine;

    if (task->mask >= fold->power)
        return ucx_fold_finish(task, fold);
    theirs = range_of(task, fold, partner, task->mask);
    mine = range_of(task, fold, fold->number, task->mask);
    ucx_task_recv(task, member, place_of(task, theirs), bytes_of(task, theirs));
    ucx_task_send(task, member, place_of(task, mine), bytes_of(task, mine));
    task->state = FOLD_GATHERED;
    return true;
}

/* Exchange halves with the member at distance task->mask, or begin to gather.
 */
static bool halve_next(ucx_task_t *task, const ucx_fold_t *fold)
{
    int partner = fold->number ^ task->mask;
    int member = ucx_fold_member(fold, partner);
    range_t theirs, mine;

    if (task->mask == 0) {
        task->mask = 1;
        return gather_next(task, fold);
    }
    theirs = range_of(task, fold, partner, task->mask);
    mine = range_of(task, fold, fold->number, task->mask);
    check(mine.end <= theirs.begin || theirs.end <= mine.begin,
          "elements %zu to %zu and %zu to %zu overlap", mine.begin, mine.end,
          theirs.begin, theirs.end);
    ucx_task_recv(task, member, task->scratch, bytes_of(task, mine));
    ucx_task_send(task, member, place_of(task, theirs), bytes_of(task, theirs));
    task->state = FOLD_HALVED;
    return true;
}

/* The half of the partner has come: combine, and go on. */
static bool halved(ucx_task_t *task, const ucx_fold_t *fold)
{
    range_t mine = range_of(task, fold, fold->number, task->mask);

    ucx_fold_combine(task, mine.begin, mine.end - mine.begin,
                     (fold->number & task->mask) != 0);
    task->mask /= 2;
    return halve_next(task, fold);
}

bool ucx_halving(ucx_task_t *task)
{
    ucx_fold_t fold = ucx_fold_of(task);

    switch (task->state) {
    case FOLD_BEGIN:
        task->mask = fold.power / 2;
        return ucx_fold_begin(task, &fold) || halve_next(task, &fold);
    case FOLD_TAKEN:
        ucx_fold_combine(task, 0, task->request->count, true);
        return halve_next(task, &fold);
    case FOLD_HALVED:
        return halved(task, &fold);
    case FOLD_GATHERED:
        task->mask *= 2;
        return gather_next(task, &fold);
    case FOLD_AWAIT:
        ucx_fold_await(task);
        return true;
    default:
        return false;
    }
}
