/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device of a group: the group of its memory is opened beside that of the
 * host, and all ranks learn whether each of them could open its device.
 */
#include "cddp/device.h"

#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "comm/comm_split.h"
#include "comm/comm_vote.h"

#define GPU "cuda"

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

err_code_t api_data_open(cddp_group_t *group, err_t *err)
{
    const comm_config_t config = {.backend = comm_group_backend(group->inner),
                                  .timeout = comm_group_timeout(group->inner),
                                  .dev = group->dev};

    if (group->dev != NULL)
        return comm_split_whole(group->inner, &config, &group->data, err);
    group->data = group->inner;
    return ERR_OK;
}

err_code_t api_device_open(cddp_group_t *group, const char *name, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    (void)device_open(group, name, &mine);
    rc = comm_vote(group->inner, &mine, err);
    return rc == ERR_OK ? api_data_open(group, err) : rc;
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
