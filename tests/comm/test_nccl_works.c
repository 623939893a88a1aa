/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Groups of NCCL: collectives that end in another order than they began. */
#include <criterion/criterion.h>

#include "comm/comm_ops.h"
#include "comm/nccl_rig.h"

#define MANY (COMM_WORKS_MAX + 50)

/* Sum one number, which is 0. */
static comm_state_t sum_start(nccl_rig_t *rig, size_t at, comm_work_t **work,
                              err_t *err)
{
    return comm_allreduce_start(rig->group, rig->data + at * sizeof(double), 1,
                                COMM_FLOAT64, COMM_SUM, work, err);
}

static int works_main(const comm_oob_t *oob, void *argument)
{
    comm_work_t *first = NULL, *works[COMM_WORKS_MAX] = {NULL};
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, argument, oob, &err), err);
    RANKS_CHECK(sum_start(&rig, 0, &first, &err) == COMM_PENDING);
    for (int i = 0; i < MANY; i++) {
        RANKS_CHECK(sum_start(&rig, 1, &works[0], &err) == COMM_PENDING);
        RANKS_OK(comm_work_wait_on(works[0], rig.stream, &err), err);
    }
    for (int i = 1; i < COMM_WORKS_MAX; i++)
        RANKS_CHECK(sum_start(&rig, 1, &works[i], &err) == COMM_PENDING);
    RANKS_CHECK(sum_start(&rig, 1, &works[0], &err) == COMM_FAILED);
    RANKS_CHECK(err.code == ERR_CONFIG);
    for (int i = 1; i < COMM_WORKS_MAX; i++)
        RANKS_OK(comm_work_wait_on(works[i], rig.stream, &err), err);
    RANKS_OK(comm_work_wait_on(first, rig.stream, &err), err);
    RANKS_OK(dev_stream_wait(rig.stream, &err), err);
    nccl_rig_close(&rig);
    return 0;
}

/* Many sums of syncbatchnorm may begin and end while a bucket is in flight.
 * Only works that have not ended count towards COMM_WORKS_MAX. */
Test(nccl_works, one_may_outlast_many_others)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};

    nccl_rig_run(2, works_main, &plan);
}
