/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device of a group: the group of its memory is opened beside that of the
 * host, and all ranks learn whether each of them could open its device.
 */
#include "cddp/device.h"

#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "comm/comm_data.h"
#include "comm/comm_split.h"
#include "comm/comm_vote.h"

#define GPU "cuda"
#define LISTED 16 /* GPUs of a host whose UUIDs are asked for */

/* Read [text]: is a GPU wanted, and which? *index is -1 if the program leaves
 * that open. */
static err_code_t name_read(const char *text, bool *gpu, int *index, err_t *err)
{
    const size_t length = strlen(GPU);
    const char *number;
    int value = 0;

    *index = -1;
    *gpu = text != NULL && strncmp(text, GPU, length) == 0;
    if (text == NULL || strcmp(text, DEV_HOST) == 0 || strcmp(text, GPU) == 0)
        return ERR_OK;
    number = text + (*gpu ? length + 1 : 0);
    while (*gpu && number[value] >= '0' && number[value] <= '9' && value < 4)
        value++;
    if (!*gpu || text[length] != ':' || value == 0 || number[value] != '\0')
        return err_set(err, ERR_CONFIG,
                       "the device of a group is \"%s\": expected cpu, cuda, "
                       "or cuda: with the number of a GPU, such as cuda:1",
                       text);
    *index = 0;
    for (int i = 0; i < value; i++)
        *index = 10 * *index + (number[i] - '0');
    return ERR_OK;
}

/* This rank's number among the ranks of its host. */
static err_code_t local_find(const comm_group_t *group, int *local, err_t *err)
{
    int *ranks = NULL;
    err_code_t rc = mem_new(int, (size_t)comm_group_size(group),
                            "ranks of a host", &ranks, err);

    if (rc != ERR_OK)
        return rc;
    comm_split_ranks(group, COMM_SPLIT_NODE, ranks);
    *local = 0;
    while (ranks[*local] != comm_group_rank(group))
        (*local)++;
    mem_free(ranks);
    return ERR_OK;
}

/* Open the device that [name] means for this rank. Local. */
static err_code_t device_open(cddp_group_t *group, const char *name, err_t *err)
{
    int count = 0, local = 0, index;
    bool gpu;
    err_code_t rc = name_read(name, &gpu, &index, err);

    if (rc != ERR_OK || !gpu)
        return rc;
    rc = dev_list(GPU, NULL, 0, &count, err);
    if (rc == ERR_OK && index < 0)
        rc = local_find(group->inner, &local, err);
    if (index < 0)
        index = count > 0 ? local % count : 0;
    if (rc == ERR_OK)
        rc = dev_open(GPU, index, &group->dev, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(group->dev, DEV_STREAM_COPY, &group->stream, err);
    group->index = index;
    if (rc != ERR_OK)
        err_prefix(err, "the device of a group is %s", name);
    return rc;
}

/* ---- the group of its memory --------------------------------------------- */

/* Refuse the backend nccl where it cannot work. Local. */
static err_code_t nccl_check(const cddp_group_t *group,
                             const cddp_run_config_t *config, err_t *err)
{
    if (config->backend == NULL || strcmp(config->backend, COMM_NCCL) != 0)
        return ERR_OK;
    if (group->dev == NULL)
        return err_set(err, ERR_CONFIG,
                       "the backend of a group is nccl, which works on GPUs, "
                       "and the device is cpu: set the device to cuda, or the "
                       "backend to auto");
    if (config->local > 1)
        return err_set(err, ERR_CONFIG,
                       "the backend of a group is nccl, which needs a process "
                       "for each rank, and the %d ranks are threads of one "
                       "process: start them by srun --mpi=pmix, or set the "
                       "backend to auto",
                       config->local);
    return ERR_OK;
}

/* The UUID of the GPU of [group], "" if it is not known, in [out]. */
static void uuid_find(const cddp_group_t *group, char *out, size_t room)
{
    dev_info_t list[LISTED];
    int count = 0;

    out[0] = '\0';
    if (group->index < LISTED &&
        dev_list(GPU, list, LISTED, &count, NULL) == ERR_OK &&
        group->index < count)
        snprintf(out, room, "%s", list[group->index].uuid);
}

/* Ranks that share a GPU can sum by NCCL only if NCCL takes them for ranks of
 * different hosts. So they do that only if the program names the backend;
 * otherwise *backend becomes that of the group's other collectives.
 * Collective. */
static err_code_t sharing_heed(const cddp_group_t *group, bool named,
                               const char **backend, err_t *err)
{
    const int rank = comm_group_rank(group->inner);
    char uuid[sizeof((dev_info_t *)NULL)->uuid];
    int a, b;
    err_code_t rc;

    uuid_find(group, uuid, sizeof uuid);
    rc = comm_sharers_find(group->inner, uuid, &a, &b, err);
    if (rc != ERR_OK || a < 0)
        return rc;
    if (named)
        comm_sharing_allow(rank);
    else
        *backend = comm_group_backend(group->inner);
    if (rank == 0)
        log_warn("api",
                 "ranks %d and %d on %s share a GPU: they take turns on it, "
                 "and their gradients %s",
                 a, b, comm_group_host(group->inner, a),
                 named ? "do not go from GPU to GPU"
                       : "are summed in the host's memory");
    return ERR_OK;
}

/* Open group->data with [backend]. All ranks get the error of the lowest rank
 * that has one. Collective. */
static err_code_t data_open(cddp_group_t *group, const char *backend,
                            err_t *err)
{
    const comm_config_t config = {.backend = backend,
                                  .timeout = comm_group_timeout(group->inner),
                                  .dev = group->dev};
    err_t mine = ERR_INIT;

    if (comm_split_whole(group->inner, &config, &group->data, &mine) ==
            ERR_UNAVAILABLE &&
        strcmp(backend, COMM_NCCL) == 0)
        err_suffix(&mine, "the backend ucx needs no NCCL, but is slower");
    return comm_vote(group->inner, &mine, err);
}

/* Each wait for the device calls this, to learn whether it must end. Only the
 * rank's own thread waits for its device, and it also sets [reduces]. */
static err_code_t device_look(void *context, double waited, err_t *err)
{
    const cddp_group_t *root = context;
    comm_group_t *data = root->reduces->data;

    return data == NULL ? ERR_OK : comm_group_look(data, waited, err);
}

/* Open the group of the memory of the devices. Collective. */
static err_code_t data_choose(cddp_group_t *group,
                              const cddp_run_config_t *config, err_t *err)
{
    const char *asked = config->backend;
    const char *backend;
    err_code_t rc = ERR_OK;

    group->data = group->inner;
    if (group->dev == NULL)
        return ERR_OK;
    group->data = NULL;
    backend =
        comm_data_backend(asked, comm_group_backend(group->inner), group->dev);
    if (strcmp(backend, COMM_NCCL) == 0)
        rc = sharing_heed(group, asked != NULL && strcmp(asked, backend) == 0,
                          &backend, err);
    if (rc == ERR_OK)
        rc = data_open(group, backend, err);
    /* Where the host sums, no wait for the device is one for other ranks. */
    if (rc == ERR_OK && strcmp(backend, COMM_NCCL) == 0)
        dev_watch(group->dev, device_look, group);
    return rc;
}

err_code_t api_device_open(cddp_group_t *group, const cddp_run_config_t *config,
                           err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    if (device_open(group, config->device, &mine) == ERR_OK)
        (void)nccl_check(group, config, &mine);
    rc = comm_vote(group->inner, &mine, err);
    return rc == ERR_OK ? data_choose(group, config, err) : rc;
}

err_code_t api_data_split(cddp_group_t *group, const cddp_group_t *parent,
                          err_t *err)
{
    const char *backend = comm_group_backend(group->inner);

    if (group->dev == NULL) {
        group->data = group->inner;
        return ERR_OK;
    }
    if (comm_group_size(group->inner) > 1 &&
        strcmp(comm_group_backend(parent->data), COMM_NCCL) == 0)
        backend = COMM_NCCL;
    return data_open(group, backend, err);
}

void api_data_close(cddp_group_t *group)
{
    if (group->data != group->inner)
        comm_group_close(group->data);
    group->data = NULL;
}

void api_device_close(cddp_group_t *group)
{
    dev_stream_close(group->stream);
    dev_close(group->dev);
    group->stream = NULL;
    group->dev = NULL;
}

/* ---- what programs call -------------------------------------------------- */

int cddp_group_device(const cddp_group_t *group)
{
    return group->dev == NULL ? -1 : group->index;
}

cddp_code_t cddp_device_copy(cddp_group_t *group, void *to, const void *from,
                             size_t bytes, cddp_copy_t how, cddp_error_t *error)
{
    err_t err = ERR_INIT;
    err_code_t rc;

    if (group->dev == NULL) {
        memmove(to, from, bytes);
        return CDDP_OK;
    }
    rc = dev_copy(group->stream, to, from, bytes,
                  how == CDDP_TO_DEVICE ? DEV_HOST_TO_DEV : DEV_DEV_TO_HOST,
                  &err);
    if (rc == ERR_OK) {
        rc = dev_stream_wait(group->stream, &err);
        /* The caller's memory must not be written after the return. If the
         * device has failed for good, it copies nothing any more. */
        if (rc != ERR_OK)
            (void)dev_stream_wait(group->stream, NULL);
    }
    return api_answer(rc, &err, error);
}
