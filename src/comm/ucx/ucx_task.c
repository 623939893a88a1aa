/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_task.h"

#include "base/check.h"

/* Minimum bytes of scratch of a task, and of a task for each member. */
#define SCRATCH_BYTES ((size_t)256 << 10)
#define SCRATCH_MEMBER ((size_t)4 << 10)

void ucx_task_begin(ucx_task_t *task)
{
    check(task->index >= 0 && task->index < task->lanes &&
              task->rank < task->size,
          "lane %d of %d of member %d of %d", task->index, task->lanes,
          task->rank, task->size);
    check(task->scratch_bytes >= ucx_task_scratch(task->size),
          "%zu bytes of scratch for %d members", task->scratch_bytes,
          task->size);
    task->state = 0;
    task->mask = 0;
    task->at = (size_t)task->index * COMM_CHUNK_BYTES;
}

size_t ucx_task_scratch(int size)
{
    size_t members = (size_t)size * SCRATCH_MEMBER;

    return members > SCRATCH_BYTES ? members : SCRATCH_BYTES;
}

size_t ucx_task_longest(const ucx_task_t *task)
{
    const size_t *cuts = task->request->cuts;
    size_t longest = 0;

    for (int member = 0; member < task->size; member++) {
        size_t count = cuts[member + 1] - cuts[member];

        longest = count > longest ? count : longest;
    }
    return longest;
}
