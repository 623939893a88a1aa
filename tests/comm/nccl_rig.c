/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/nccl_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "comm/comm_split.h"

err_code_t nccl_rig_group(nccl_rig_t *rig, dev_device_t *dev, err_t *err)
{
    const comm_config_t config = {.backend = "nccl",
                                  .timeout = rig->plan->timeout,
                                  .dev = dev,
                                  .tree_scratch = rig->plan->scratch};

    return comm_split_whole(rig->control, &config, &rig->group, err);
}

err_code_t nccl_rig_control(nccl_rig_t *rig, const nccl_plan_t *plan,
                            const comm_oob_t *oob, err_t *err)
{
    const comm_config_t config = {.backend = oob->size == 1 ? "self" : "ucx",
                                  .timeout = plan->timeout};

    *rig = (nccl_rig_t){.plan = plan, .rank = oob->rank, .size = oob->size};
    ranks_transports();
    emu_set(plan->fake, order, plan->order);
    emu_set(plan->fake, nccl_late, plan->late);
    emu_set(plan->fake, nccl_silent, plan->silent);
    return comm_group_open(&config, oob, &rig->control, err);
}

err_code_t nccl_rig_device(nccl_rig_t *rig, err_t *err)
{
    err_code_t rc = dev_open("cuda", 0, &rig->dev, err);

    if (rc == ERR_OK)
        rc = dev_stream_open(rig->dev, DEV_STREAM_COMPUTE, &rig->stream, err);
    if (rc == ERR_OK)
        rc = dev_event_open(rig->dev, &rig->event, err);
    return rc;
}

err_code_t nccl_rig_open(nccl_rig_t *rig, const nccl_plan_t *plan,
                         const comm_oob_t *oob, err_t *err)
{
    const size_t all = (size_t)oob->size * NCCL_RIG_COUNT;
    err_code_t rc = nccl_rig_control(rig, plan, oob, err);

    rig->host = calloc(all, sizeof *rig->host);
    rig->back = calloc(all, sizeof *rig->back);
    if (rc == ERR_OK)
        rc = nccl_rig_device(rig, err);
    if (rc == ERR_OK)
        rc = nccl_rig_group(rig, rig->dev, err);
    if (rc == ERR_OK)
        rc =
            comm_arena_open(rig->group, all * sizeof(double), &rig->arena, err);
    if (rc == ERR_OK)
        rig->data = comm_arena_data(rig->arena);
    return rc;
}

void nccl_rig_close(nccl_rig_t *rig)
{
    comm_arena_close(rig->arena);
    comm_group_close(rig->group);
    dev_event_close(rig->event);
    dev_stream_close(rig->stream);
    dev_close(rig->dev);
    comm_group_close(rig->control);
    free(rig->host);
    free(rig->back);
}

err_code_t nccl_rig_put(nccl_rig_t *rig, size_t bytes, err_t *err)
{
    err_code_t rc = dev_copy(rig->stream, rig->data, rig->host, bytes,
                             DEV_HOST_TO_DEV, err);

    if (rc == ERR_OK)
        rc = dev_event_record(rig->event, rig->stream, err);
    comm_group_after(rig->group, rig->event);
    return rc;
}

err_code_t nccl_rig_get(nccl_rig_t *rig, size_t bytes, err_t *err)
{
    err_code_t rc = dev_copy(rig->stream, rig->back, rig->data, bytes,
                             DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_stream_wait(rig->stream, err) : rc;
}

void nccl_rig_run(int ranks, ranks_main_t main, nccl_plan_t *plan)
{
    int results[RANKS_MAX];

    plan->fake = emu_open();
    cr_assert_eq(ranks_forks(ranks, 2 * NCCL_RIG_TIMEOUT, main, plan, results),
                 0, "%d ranks", ranks);
}

int nccl_rig_vary(nccl_plan_t *plan, int i)
{
    static const int ranks[] = {1, 2, 3, 4, 8, 0};

    plan->order = i % 2;
    plan->late = i % 3 == 2 ? 2 : 0;
    return ranks[i];
}
