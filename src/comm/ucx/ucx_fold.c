/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_fold.h"

#include "base/check.h"

ucx_fold_t ucx_fold_of(const ucx_task_t *task)
{
    ucx_fold_t fold = {.power = 1};

    while (fold.power * 2 <= task->size)
        fold.power *= 2;
    fold.rest = task->size - fold.power;
    if (task->rank >= 2 * fold.rest)
        fold.number = task->rank - fold.rest;
    else
        fold.number = task->rank % 2 ? task->rank / 2 : -1;
    return fold;
}

int ucx_fold_member(const ucx_fold_t *fold, int number)
{
    return number < fold->rest ? 2 * number + 1 : number + fold->rest;
}

bool ucx_fold_begin(ucx_task_t *task, const ucx_fold_t *fold)
{
    size_t bytes = comm_request_bytes(task->request);

    if (task->rank >= 2 * fold->rest)
        return false;
    if (fold->number < 0)
        ucx_task_send(task, task->rank + 1, task->request->data, bytes);
    else
        ucx_task_recv(task, task->rank - 1, task->scratch, bytes);
    task->state = fold->number < 0 ? FOLD_AWAIT : FOLD_TAKEN;
    return true;
}

void ucx_fold_combine(ucx_task_t *task, size_t begin, size_t count,
                      bool theirs_first)
{
    const comm_request_t *what = task->request;
    void *mine = (char *)what->data + begin * comm_type_bytes(what->type);
    void *theirs = task->scratch;

    check(begin + count <= what->count &&
              count * comm_type_bytes(what->type) <= task->scratch_bytes,
          "%zu elements from %zu on, of %zu, are combined", count, begin,
          what->count);
    comm_reduce(mine, theirs_first ? theirs : mine,
                theirs_first ? mine : theirs, count, what->type, what->op);
}

bool ucx_fold_finish(ucx_task_t *task, const ucx_fold_t *fold)
{
    bool partner = task->rank < 2 * fold->rest;

    if (partner)
        ucx_task_send(task, task->rank - 1, task->request->data,
                      comm_request_bytes(task->request));
    task->state = FOLD_FINISHED;
    return partner;
}

void ucx_fold_await(ucx_task_t *task)
{
    ucx_task_recv(task, task->rank + 1, task->request->data,
                  comm_request_bytes(task->request));
    task->state = FOLD_FINISHED;
}
