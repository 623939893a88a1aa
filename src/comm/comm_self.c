/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The group of one rank: every collective is done when start returns. It is
 * also the shortest example of what a backend must do.
 */
#include <string.h>

#include "base/mem.h"
#include "comm/comm_ops.h"

static err_code_t self_open(const comm_config_t *config, const comm_oob_t *oob,
                            comm_hello_t *hellos, comm_group_t **out,
                            err_t *err)
{
    comm_group_t *group;
    err_code_t rc;

    if (oob->size != 1)
        return err_set(err, ERR_CONFIG,
                       "comm backend \"self\" is for one rank, but there are "
                       "%d: choose auto, threads or ucx",
                       oob->size);
    rc = mem_new(comm_group_t, 1, "comm group", &group, err);
    if (rc != ERR_OK)
        return rc;
    group->ops = &comm_self_ops;
    group->rank = 0;
    group->size = 1;
    group->timeout = config->timeout;
    group->table = config->table;
    group->hellos = hellos;
    *out = group;
    return ERR_OK;
}

static void self_close(comm_group_t *group)
{
    mem_free(group);
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

static void self_tree(const comm_request_t *request)
{
    comm_fold_t fold;

    comm_fold_begin(&fold, request->leaves, request->count, request->type);
    comm_fold_push_views(&fold, request->first, request->held, request->views,
                         0);
    memmove(request->data, comm_fold_total(&fold), comm_request_bytes(request));
}

static comm_state_t self_start(comm_group_t *group,
                               const comm_request_t *request,
                               comm_work_t **work, err_t *err)
{
    (void)group;
    (void)err;
    if (request->kind == COMM_TREE)
        self_tree(request);
    if (request->kind == COMM_ALLGATHER && request->data != request->mine)
        memmove(request->data, request->mine, request->count);
    *work = NULL;
    return COMM_DONE;
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
    .open = self_open,
    .close = self_close,
    .report = self_report,
    .check = self_check,
    .start = self_start,
    .poll = self_poll,
    .wait = self_wait,
};
