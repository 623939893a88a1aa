/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The ranks of a group agree on a communicator. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/nccl/nccl_group.h"

/* With so many ranks or more, several ranks make an id each. NCCL then connects
 * the ranks of each id among themselves first, so no rank has to answer all
 * other ranks. */
#define SCALABLE 64
#define RANKS_PER_ID 32

/* What a rank tells the others when it joins. */
typedef struct nccl_hello {
    ncclUniqueId id; /* of a rank that makes one */
    int64_t code;
    bool scalable; /* the library can take several ids */
    bool late;     /* failed while it waited: others may know the cause */
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

/* How many ids [size] ranks have, if their libraries can take several. */
static int ids_of(int size)
{
    return size < SCALABLE ? 1 : (size + RANKS_PER_ID - 1) / RANKS_PER_ID;
}

/* The rank that makes id [i] of [ids]: the first of the ranks that NCCL assigns
 * to this id. */
static int id_maker(int i, int ids, int size)
{
    const int more = size % ids;

    return i * (size / ids) + (i < more ? i : more);
}

/* Does this rank make an id? */
static bool makes_id(const nccl_group_t *group)
{
    const int ids = group->nccl->CommInitRankScalable == NULL
                        ? 1
                        : ids_of(group->base.size);
    bool makes = false;

    for (int i = 0; i < ids; i++)
        makes = makes || id_maker(i, ids, group->base.size) == group->base.rank;
    return makes;
}

/* Begin to open the communicator with the ids in [all]; *call becomes the name
 * of NCCL's function. */
static err_code_t comm_begin(nccl_group_t *group, const nccl_hello_t *all,
                             const char **call, ncclResult_t *result,
                             err_t *err)
{
    const int size = group->base.size, rank = group->base.rank;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId *id = NULL;
    int ids = ids_of(size);
    err_code_t rc;

    config.blocking = 0;
    for (int r = 0; r < size; r++)
        ids = all[r].scalable ? ids : 1;
    if (ids == 1) {
        *call = "ncclCommInitRankConfig";
        *result = group->nccl->CommInitRankConfig(&group->comm, size, all[0].id,
                                                  rank, &config);
        return ERR_OK;
    }
    rc = mem_new(ncclUniqueId, (size_t)ids, "ids of NCCL", &id, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < ids; i++)
        id[i] = all[id_maker(i, ids, size)].id;
    *call = "ncclCommInitRankScalable";
    *result = group->nccl->CommInitRankScalable(&group->comm, size, rank, ids,
                                                id, &config);
    mem_free(id);
    return ERR_OK;
}

/* Open the communicator: the call returns at once, and polls wait for the other
 * ranks. [late]: the error came from these polls. */
static err_code_t comm_join(nccl_group_t *group, const nccl_hello_t *all,
                            bool *late, err_t *err)
{
    const char *call;
    ncclResult_t result;
    err_code_t rc = comm_begin(group, all, &call, &result, err);

    if (rc == ERR_OK)
        rc = nccl_check(group, result, call, err);
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
    return rc == ERR_OK ? nccl_tree_open(group, err) : rc;
}

/* Rank 0 makes the id, or several ranks make an id each; then all ranks join.
 * Each of the two steps ends with an exchange in which ranks tell each other
 * whether they can go on. */
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
    mine.scalable = group->nccl->CommInitRankScalable != NULL;
    if (rc == ERR_OK && makes_id(group))
        nccl_check(group, group->nccl->GetUniqueId(&mine.id), "ncclGetUniqueId",
                   &reason);
    rc = hellos_exchange(oob, &mine, &reason, all, err);
    if (rc == ERR_OK) {
        (void)comm_join(group, all, &mine.late, &reason);
        rc = hellos_exchange(oob, &mine, &reason, all, err);
    }
    mem_free(all);
    return rc;
}
