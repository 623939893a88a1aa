/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/comm_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm_vote.h"
#include "dev/dev.h"

/* Bytes of a UUID. */
#define ROOM sizeof((dev_info_t *)NULL)->uuid

static bool open_to_us(const char *asked)
{
    return asked == NULL || strcmp(asked, "auto") == 0;
}

const char *comm_control_backend(const char *asked, int size, const char *usual)
{
    if (!open_to_us(asked) && strcmp(asked, COMM_NCCL) != 0)
        return asked;
    return size == 1 ? "self" : usual;
}

const char *comm_data_backend(const char *asked, const char *control,
                              const dev_device_t *dev)
{
    if (open_to_us(asked))
        return strcmp(control, "ucx") == 0 && strcmp(dev_name(dev), "cuda") == 0
                   ? COMM_NCCL
                   : control;
    return strcmp(asked, COMM_NCCL) == 0 ? COMM_NCCL : control;
}

/* Do the devices [a] and [b] of two ranks have one UUID? */
static bool same_device(const char *a, const char *b)
{
    return a[0] != '\0' && strncmp(a, b, ROOM) == 0;
}

err_code_t comm_sharers_find(comm_group_t *control, const char *uuid, int *a,
                             int *b, err_t *err)
{
    const int size = comm_group_size(control);
    char mine[ROOM] = "", *all = NULL;
    err_t lack = ERR_INIT;
    err_code_t rc;

    *a = *b = -1;
    (void)mem_new(char, (size_t)size *ROOM, "GPUs of the ranks", &all, &lack);
    rc = comm_vote(control, &lack, err);
    snprintf(mine, sizeof mine, "%s", uuid);
    if (rc == ERR_OK)
        rc = comm_allgather(control, mine, ROOM, all, err);
    for (int r = 1; rc == ERR_OK && *b < 0 && r < size; r++)
        for (int q = 0; *b < 0 && q < r; q++)
            if (same_device(all + (size_t)q * ROOM, all + (size_t)r * ROOM) &&
                strcmp(comm_group_host(control, q),
                       comm_group_host(control, r)) == 0) {
                *a = q;
                *b = r;
            }
    mem_free(all);
    return rc;
}

void comm_sharing_allow(int rank)
{
    char host[32];

    snprintf(host, sizeof host, "cddp-rank-%d", rank);
    (void)setenv("NCCL_HOSTID", host, 0);
}
