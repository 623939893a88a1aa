/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The collectives of comm_collective.h: each makes a request of its arguments,
 * checks it and passes it to the backend. Then the blocking forms.
 */
#include "comm/comm_collective.h"

#include <stdio.h>
#include <string.h>

#include "comm/comm_ops.h"
#include "comm/comm_plan.h"

/* ---- requests ------------------------------------------------------------ */

const char *comm_kind_name(comm_kind_t kind)
{
    static const char *const names[] = {
        [COMM_ALLREDUCE] = "all-reduce",
        [COMM_TREE] = "all-reduce along a tree",
        [COMM_BROADCAST] = "broadcast",
        [COMM_ALLGATHER] = "all-gather",
        [COMM_REDUCE_SCATTER] = "reduce-scatter",
        [COMM_GATHER_RANGES] = "all-gather of ranges",
        [COMM_BARRIER] = "barrier",
    };

    return names[kind];
}

void comm_request_print(const comm_request_t *request, char *text, size_t room)
{
    static const char *const ops[] = {[COMM_SUM] = ", sum",
                                      [COMM_MAX] = ", maximum",
                                      [COMM_MIN] = ", minimum"};
    const char *kind = comm_kind_name(request->kind);
    const char *a = kind[0] == 'a' ? "an" : "a";
    const size_t count = request->count;

    switch (request->kind) {
    case COMM_BARRIER:
        snprintf(text, room, "%s %s", a, kind);
        break;
    case COMM_BROADCAST:
        snprintf(text, room, "%s %s of %zu bytes from rank %d", a, kind, count,
                 request->root);
        break;
    case COMM_ALLGATHER:
        snprintf(text, room, "%s %s of %zu bytes a rank", a, kind, count);
        break;
    default:
        snprintf(text, room, "%s %s of %zu %s%s", a, kind, count,
                 comm_type_name(request->type),
                 request->kind == COMM_GATHER_RANGES ? "" : ops[request->op]);
        break;
    }
}

/* ---- collectives --------------------------------------------------------- */

void comm_group_after(comm_group_t *group, dev_event_t *event)
{
    group->after = event;
}

err_code_t comm_group_after_stream(comm_group_t *group, dev_event_t *event,
                                   dev_stream_t *stream, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = dev_event_record(event, stream, &reason);

    if (rc == ERR_OK)
        comm_group_after(group, event);
    return comm_group_result(group, rc, &reason, err);
}

static comm_state_t start_nothing(comm_group_t *group, comm_work_t **work)
{
    group->after = NULL;
    *work = NULL;
    return COMM_DONE;
}

static comm_state_t request_start(comm_group_t *group, comm_request_t *request,
                                  comm_work_t **work, err_t *err)
{
    request->after = group->after;
    group->after = NULL;
    return group->ops->start(group, request, work, err);
}

comm_state_t comm_allreduce_start(comm_group_t *group, void *data, size_t count,
                                  comm_type_t type, comm_op_t op,
                                  comm_work_t **work, err_t *err)
{
    comm_request_t request = {.kind = COMM_ALLREDUCE,
                              .data = data,
                              .count = count,
                              .type = type,
                              .op = op};

    if (count == 0)
        return start_nothing(group, work);
    return request_start(group, &request, work, err);
}

const char *comm_allreduce_name(const comm_group_t *group, const void *data,
                                size_t count, comm_type_t type)
{
    comm_plan_t plan;

    if (comm_allreduce_plan(group, data, count, type, &plan))
        return comm_plan_name(&plan);
    return group->size == 1 ? "none" : group->ops->name;
}

bool comm_allreduce_plan(const comm_group_t *group, const void *data,
                         size_t count, comm_type_t type, comm_plan_t *out)
{
    bool planned = group->size > 1 && group->ops->allreduce_plan != NULL;

    memset(out, 0, sizeof *out);
    if (planned)
        group->ops->allreduce_plan(group, data, count, type, out);
    return planned;
}

comm_state_t comm_allreduce_tree_start(comm_group_t *group, void *const *views,
                                       const comm_leaves_t *mine, void *data,
                                       size_t count, comm_type_t type,
                                       comm_work_t **work, err_t *err)
{
    comm_request_t request = {.kind = COMM_TREE,
                              .data = data,
                              .count = count,
                              .type = type,
                              .op = COMM_SUM,
                              .views = views,
                              .first = mine->first,
                              .held = mine->held,
                              .leaves = mine->leaves,
                              .ranges = mine->ranges};
    int64_t first = mine->first, held = mine->held, leaves = mine->leaves;

    if (held < 0 || (held > 0 && (first < 0 || held > leaves - first))) {
        err_set(err, ERR_CONFIG,
                "rank %d holds leaves %lld to %lld of a tree over %lld",
                group->rank, (long long)first, (long long)(first + held - 1),
                (long long)leaves);
        return COMM_FAILED;
    }
    if (count == 0 || leaves == 0)
        return start_nothing(group, work);
    return request_start(group, &request, work, err);
}

comm_state_t comm_broadcast_start(comm_group_t *group, void *data, size_t bytes,
                                  int root, comm_work_t **work, err_t *err)
{
    comm_request_t request = {
        .kind = COMM_BROADCAST, .data = data, .count = bytes, .root = root};

    if (root < 0 || root >= group->size) {
        err_set(err, ERR_CONFIG, "broadcast from rank %d of %d ranks", root,
                group->size);
        return COMM_FAILED;
    }
    if (bytes == 0)
        return start_nothing(group, work);
    return request_start(group, &request, work, err);
}

comm_state_t comm_allgather_start(comm_group_t *group, const void *mine,
                                  size_t bytes, void *all, comm_work_t **work,
                                  err_t *err)
{
    comm_request_t request = {
        .kind = COMM_ALLGATHER, .data = all, .count = bytes, .mine = mine};

    if (bytes == 0)
        return start_nothing(group, work);
    return request_start(group, &request, work, err);
}

static err_code_t cuts_check(const comm_group_t *group, const size_t *cuts,
                             err_t *err)
{
    if (cuts[0] != 0)
        return err_set(err, ERR_CONFIG,
                       "rank %d cuts a buffer from element %zu on: the first "
                       "cut must be 0",
                       group->rank, cuts[0]);
    for (int rank = 0; rank < group->size; rank++)
        if (cuts[rank + 1] < cuts[rank])
            return err_set(err, ERR_CONFIG,
                           "rank %d cuts a buffer so that the range of rank %d "
                           "goes from element %zu back to %zu",
                           group->rank, rank, cuts[rank], cuts[rank + 1]);
    return ERR_OK;
}

static comm_state_t ranges_start(comm_group_t *group, comm_request_t *request,
                                 comm_work_t **work, err_t *err)
{
    if (cuts_check(group, request->cuts, err) != ERR_OK)
        return COMM_FAILED;
    if (request->count == 0)
        return start_nothing(group, work);
    return request_start(group, request, work, err);
}

comm_state_t comm_reduce_scatter_start(comm_group_t *group, void *data,
                                       const size_t *cuts, comm_type_t type,
                                       comm_op_t op, comm_work_t **work,
                                       err_t *err)
{
    comm_request_t request = {.kind = COMM_REDUCE_SCATTER,
                              .data = data,
                              .count = cuts[group->size],
                              .type = type,
                              .op = op,
                              .cuts = cuts};

    return ranges_start(group, &request, work, err);
}

comm_state_t comm_allgather_ranges_start(comm_group_t *group, void *data,
                                         const size_t *cuts, comm_type_t type,
                                         comm_work_t **work, err_t *err)
{
    comm_request_t request = {.kind = COMM_GATHER_RANGES,
                              .data = data,
                              .count = cuts[group->size],
                              .type = type,
                              .cuts = cuts};

    return ranges_start(group, &request, work, err);
}

comm_state_t comm_barrier_start(comm_group_t *group, comm_work_t **work,
                                err_t *err)
{
    comm_request_t request = {.kind = COMM_BARRIER};

    return request_start(group, &request, work, err);
}

comm_state_t comm_work_poll(comm_work_t *work)
{
    return work == NULL ? COMM_DONE : work->group->ops->poll(work);
}

err_code_t comm_work_wait(comm_work_t *work, err_t *err)
{
    return work == NULL ? ERR_OK : work->group->ops->wait(work, err);
}

err_code_t comm_work_wait_on(comm_work_t *work, dev_stream_t *stream,
                             err_t *err)
{
    if (work == NULL)
        return ERR_OK;
    return work->group->ops->wait_on != NULL
               ? work->group->ops->wait_on(work, stream, err)
               : work->group->ops->wait(work, err);
}

/* ---- start and wait in one ----------------------------------------------- */

err_code_t comm_sum_on(comm_group_t *group, double *numbers, size_t count,
                       dev_event_t *event, dev_stream_t *stream, err_t *err)
{
    comm_work_t *work = NULL;
    err_t reason = ERR_INIT;
    err_code_t rc = comm_group_after_stream(group, event, stream, err);

    if (rc != ERR_OK)
        return rc;
    if (comm_allreduce_start(group, numbers, count, COMM_FLOAT64, COMM_SUM,
                             &work, &reason) == COMM_FAILED)
        return err_copy(err, &reason);
    return comm_work_wait_on(work, stream, err);
}

/* Wait for a collective whose start returned [state], and return its code. If
 * the start failed, [local] has its error, which is copied to [err] (may be
 * NULL). */
static err_code_t finish(comm_group_t *group, comm_state_t state,
                         comm_work_t **work, err_t *local, err_t *err)
{
    group->waits = false;
    if (state != COMM_FAILED)
        return comm_work_wait(*work, err);
    return err_copy(err, local);
}

err_code_t comm_allreduce(comm_group_t *group, void *data, size_t count,
                          comm_type_t type, comm_op_t op, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_allreduce_start(group, data, count, type, op, &work, &local),
        &work, &local, err);
}

err_code_t comm_allreduce_tree(comm_group_t *group, void *const *views,
                               const comm_leaves_t *mine, void *data,
                               size_t count, comm_type_t type, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_allreduce_tree_start(group, views, mine, data, count,
                                            type, &work, &local),
                  &work, &local, err);
}

err_code_t comm_broadcast(comm_group_t *group, void *data, size_t bytes,
                          int root, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_broadcast_start(group, data, bytes, root, &work, &local),
                  &work, &local, err);
}

err_code_t comm_allgather(comm_group_t *group, const void *mine, size_t bytes,
                          void *all, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_allgather_start(group, mine, bytes, all, &work, &local),
                  &work, &local, err);
}

err_code_t comm_reduce_scatter(comm_group_t *group, void *data,
                               const size_t *cuts, comm_type_t type,
                               comm_op_t op, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_reduce_scatter_start(group, data, cuts, type, op, &work, &local),
        &work, &local, err);
}

err_code_t comm_allgather_ranges(comm_group_t *group, void *data,
                                 const size_t *cuts, comm_type_t type,
                                 err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_allgather_ranges_start(group, data, cuts, type, &work, &local),
        &work, &local, err);
}

err_code_t comm_barrier(comm_group_t *group, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group, comm_barrier_start(group, &work, &local), &work,
                  &local, err);
}
