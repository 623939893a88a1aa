/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Collectives of the group beside this one, by which ranks tell each other
 * small numbers. */
#include "comm/nccl/nccl_group.h"

err_code_t nccl_beside(nccl_group_t *group, const comm_request_t *request,
                       err_t *err)
{
    comm_group_t *beside = group->beside;
    comm_work_t *work = NULL;
    err_t own = ERR_INIT;
    comm_state_t state;

    beside->waits = true;
    state = beside->ops->start(beside, request, &work, &own);
    beside->waits = false;
    if (state == COMM_FAILED)
        return err_copy(err, &own);
    return work == NULL ? ERR_OK : beside->ops->wait(work, err);
}

err_code_t nccl_least(nccl_group_t *group, int32_t *value, err_t *err)
{
    const comm_request_t request = {.kind = COMM_ALLREDUCE,
                                    .data = value,
                                    .count = 1,
                                    .type = COMM_INT32,
                                    .op = COMM_MIN};

    return nccl_beside(group, &request, err);
}
