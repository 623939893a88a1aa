/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The ranks of a group agree on a communicator. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/nccl/nccl_group.h"

/* What a rank tells the others when it joins. */
typedef struct nccl_hello {
    ncclUniqueId id; /* of rank 0 */
    int64_t code;
    bool late; /* failed while it waited: others may know the cause */
    char why[256];
} nccl_hello_t;

/* Exchange the hellos. [reason]: the error of this rank, or none. If any rank
 * has an error, all ranks return it. */
static err_code_t hellos_exchange(const comm_oob_t *oob, nccl_hello_t *mine,
                                  const err_t *reason, nccl_hello_t *all,
                                  err_t *err)
{
    const int size = oob->size;
    int odd = -1;
    err_code_t rc;

    mine->code = reason->code;
    snprintf(mine->why, sizeof mine->why, "%.255s", reason->text);
    rc = oob->exchange(oob->context, mine, sizeof *mine, all, err);
    for (int r = size - 1; rc == ERR_OK && r >= 0; r--)
        if (all[r].code != ERR_OK && (odd < 0 || !all[r].late || all[odd].late))
            odd = r;
    if (rc == ERR_OK && odd >= 0)
        rc = err_set(err, (err_code_t)all[odd].code,
                     "rank %d cannot join NCCL's group: %.255s", odd,
                     all[odd].why);
    return rc;
}

/* Open the communicator: the call returns at once, and polls wait for the other
 * ranks. [late]: the error came from these polls. */
static err_code_t comm_join(nccl_group_t *group, ncclUniqueId id, bool *late,
                            err_t *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t result;
    err_code_t rc;

    config.blocking = 0;
    result = group->nccl->CommInitRankConfig(&group->comm, group->base.size, id,
                                             group->base.rank, &config);
    rc = nccl_check(group, result, "ncclCommInitRankConfig", err);
    if (rc != ERR_OK)
        return rc;
    rc = nccl_settle(group, err);
    *late = rc != ERR_OK;
    return rc;
}

/* Open all that this rank needs except the communicator. */
static err_code_t parts_open(nccl_group_t *group, err_t *err)
{
    dev_device_t *dev = group->base.dev;
    err_code_t rc = dev_stream_open(dev, DEV_STREAM_COMM, &group->stream, err);

    if (rc == ERR_OK)
        rc = dev_alloc(dev, sizeof(int32_t), "comm barriers", &group->nothing,
                       err);
    if (rc == ERR_OK)
        rc = dev_pinned_alloc(dev, sizeof *group->marks, "comm marks",
                              (void **)&group->marks, err);
    for (int i = 0; rc == ERR_OK && i < COMM_WORKS_MAX; i++)
        rc = dev_event_open(dev, &group->works[i].done, err);
    return rc;
}

/* Rank 0 makes the id; then all ranks join. Each of the two steps ends with an
 * exchange in which ranks tell each other whether they can go on. */
err_code_t nccl_join(nccl_group_t *group, const comm_oob_t *oob, err_t *err)
{
    nccl_hello_t mine, *all = NULL;
    err_t reason = ERR_INIT;
    err_code_t rc =
        mem_new(nccl_hello_t, (size_t)oob->size, "comm hellos", &all, err);

    if (rc != ERR_OK)
        return rc;
    memset(&mine, 0, sizeof mine);
    rc = parts_open(group, &reason);
    if (rc == ERR_OK && oob->rank == 0)
        nccl_check(group, group->nccl->GetUniqueId(&mine.id), "ncclGetUniqueId",
                   &reason);
    rc = hellos_exchange(oob, &mine, &reason, all, err);
    if (rc == ERR_OK) {
        (void)comm_join(group, all[0].id, &mine.late, &reason);
        rc = hellos_exchange(oob, &mine, &reason, all, err);
    }
    mem_free(all);
    return rc;
}
