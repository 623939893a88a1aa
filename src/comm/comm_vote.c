/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/comm_vote.h"

#include "base/check.h"
#include "comm/comm_ops.h"

/* Of each number the ranks first find the minimum over all ranks. */
typedef struct answer {
    int32_t first; /* lowest rank with an error; the group's size: none */
    int32_t all;   /* 1: every rank has an error */
} answer_t;

err_code_t comm_vote(comm_group_t *group, const err_t *mine, err_t *err)
{
    const bool well = mine->code == ERR_OK;
    answer_t answer = {well ? group->size : group->rank, !well};
    err_t said = *mine;
    err_code_t rc;

    check(group->dev == NULL, "a vote in a group of a device's memory");
    rc = comm_allreduce(group, &answer, sizeof answer / sizeof answer.first,
                        COMM_INT32, COMM_MIN, err);
    if (rc != ERR_OK || answer.first == group->size)
        return rc;
    if (answer.first == group->rank && !answer.all)
        err_prefix(&said, "rank %d on %s", comm_rank_name(group, group->rank),
                   group->hellos[group->rank].host);
    rc = comm_broadcast(group, &said, sizeof said, answer.first, err);
    return rc == ERR_OK ? err_copy(err, &said) : rc;
}
