/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/far_ranks.h"

#include "comm/comm_split.h"

err_code_t far_rank_open(far_rank_t *far, const far_plan_t *plan,
                         const comm_oob_t *oob, err_t *err)
{
    const comm_config_t config = {.backend = plan->backend,
                                  .timeout = plan->timeout};
    err_code_t rc;

    *far = (far_rank_t){.rank = oob->rank, .size = oob->size};
    rc = comm_group_open(&config, oob, &far->control, err);
    if (rc == ERR_OK)
        rc = dev_open("far", plan->order, &far->dev, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(far->dev, DEV_STREAM_COMPUTE, &far->stream, err);
    return rc == ERR_OK ? dev_event_open(far->dev, &far->event, err) : rc;
}

err_code_t far_rank_join(far_rank_t *far, const far_plan_t *plan, err_t *err)
{
    const comm_config_t config = {
        .backend = plan->backend, .timeout = plan->timeout, .dev = far->dev};

    return comm_split_whole(far->control, &config, &far->group, err);
}

void far_rank_close(far_rank_t *far)
{
    comm_group_close(far->group);
    dev_event_close(far->event);
    dev_stream_close(far->stream);
    dev_close(far->dev);
    comm_group_close(far->control);
}

err_code_t far_rank_put(far_rank_t *far, void *to, const void *from,
                        size_t bytes, bool after, err_t *err)
{
    err_code_t rc =
        dev_copy(far->stream, to, from, bytes, DEV_HOST_TO_DEV, err);

    if (rc == ERR_OK)
        rc = dev_event_record(far->event, far->stream, err);
    if (rc == ERR_OK && after)
        comm_group_after(far->group, far->event);
    return rc;
}

err_code_t far_rank_get(far_rank_t *far, void *to, const void *from,
                        size_t bytes, err_t *err)
{
    err_code_t rc =
        dev_copy(far->stream, to, from, bytes, DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_stream_wait(far->stream, err) : rc;
}
