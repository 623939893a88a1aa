/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The group of one rank: every collective is done when start returns. It is
 * also the shortest example of what a backend must do.
 */
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/comm_ops.h"

typedef struct self_group {
    comm_group_t base;
    dev_stream_t *stream; /* of the copies on base.dev; NULL: no device */
} self_group_t;

static void self_close(comm_group_t *base)
{
    self_group_t *group = (self_group_t *)base;

    dev_stream_close(group->stream);
    mem_free(group);
}

static err_code_t self_open(const comm_config_t *config, const comm_oob_t *oob,
                            comm_hello_t *hellos, comm_group_t **out,
                            err_t *err)
{
    self_group_t *group;
    err_code_t rc;

    if (oob->size != 1)
        return err_set(err, ERR_CONFIG,
                       "comm backend \"self\" is for one rank, but there are "
                       "%d: choose auto, threads or ucx",
                       oob->size);
    rc = mem_new(self_group_t, 1, "comm group", &group, err);
    if (rc != ERR_OK)
        return rc;
    group->base = (comm_group_t){.ops = &comm_self_ops,
                                 .rank = 0,
                                 .size = 1,
                                 .timeout = config->timeout,
                                 .table = config->table,
                                 .hellos = hellos,
                                 .dev = config->dev};
    if (config->dev != NULL)
        rc = dev_stream_open(config->dev, DEV_STREAM_COMM, &group->stream, err);
    if (rc == ERR_OK)
        *out = &group->base;
    else
        self_close(&group->base);
    return rc;
}

static void self_report(comm_group_t *group, int64_t step, const char *phase)
{
    (void)group;
    (void)step;
    (void)phase;
}

static err_code_t self_check(comm_group_t *group, err_t *err)
{
    (void)group;
    (void)err;
    return ERR_OK;
}

/* Copy behind [after] and wait. */
static err_code_t device_copy(const self_group_t *group, void *to,
                              const void *from, size_t bytes,
                              dev_event_t *after, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (after != NULL)
        rc = dev_event_wait_on(after, group->stream, err);
    if (rc == ERR_OK)
        rc = dev_copy(group->stream, to, from, bytes, DEV_DEV_TO_DEV, err);
    return rc == ERR_OK ? dev_stream_wait(group->stream, err) : rc;
}

/* Bring what the request gives to where it wants it: with one rank nothing is
 * to be added, as a tree over all leaves has one view. */
static comm_state_t self_start(comm_group_t *base,
                               const comm_request_t *request,
                               comm_work_t **work, err_t *err)
{
    const void *from = request->data;
    size_t bytes = request->count;
    err_code_t rc = ERR_OK;

    if (request->kind == COMM_TREE) {
        check(request->held == request->leaves, "%lld of %lld leaves",
              (long long)request->held, (long long)request->leaves);
        from = request->views[0];
        bytes = comm_request_bytes(request);
    }
    if (request->kind == COMM_ALLGATHER)
        from = request->mine;
    if (from != request->data && base->dev == NULL)
        memmove(request->data, from, bytes);
    else if (from != request->data)
        rc = device_copy((self_group_t *)base, request->data, from, bytes,
                         request->after, err);
    *work = NULL;
    return rc == ERR_OK ? COMM_DONE : COMM_FAILED;
}

/* start never returns a work, so this is never called. */
static comm_state_t self_poll(comm_work_t *work)
{
    (void)work;
    return COMM_DONE;
}

static err_code_t self_wait(comm_work_t *work, err_t *err)
{
    (void)work;
    (void)err;
    return ERR_OK;
}

const comm_ops_t comm_self_ops = {
    .name = "self",
    .device = true,
    .open = self_open,
    .close = self_close,
    .report = self_report,
    .check = self_check,
    .start = self_start,
    .poll = self_poll,
    .wait = self_wait,
};
