/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The fault of a ucx group, and what its watch (watch.h) asks for. */
#include "comm/ucx/ucx_group.h"

#include <sys/eventfd.h>

#include "base/check.h"
#include "base/clock.h"
#include "comm/ucx/ucx_notes.h"

/* If either this rank or the culprit, but not both, chooses networks in its
 * environment, they may have no network in common. Add this to [fault]. */
static void fault_hint(const ucx_group_t *group, err_t *fault)
{
    const comm_hello_t *hellos = group->base.hellos;
    const comm_hello_t *mine = &hellos[group->base.rank], *own, *other;

    for (int rank = 0; rank < group->base.size; rank++) {
        if (comm_rank_name(&group->base, rank) != fault->culprit ||
            hellos[rank].own_net == mine->own_net)
            continue;
        own = mine->own_net != 0 ? mine : &hellos[rank];
        other = mine->own_net != 0 ? &hellos[rank] : mine;
        err_suffix(fault,
                   "rank %d on %s has UCX_NET_DEVICES, UCX_TLS or a segment "
                   "size of UCX in its environment, and rank %d on %s has "
                   "none, so they may have no network in common: set it on all "
                   "nodes or on none",
                   (int)own->name, own->host, (int)other->name, other->host);
    }
}

void ucx_group_fail(ucx_group_t *group, const err_t *fault)
{
    check(fault->code != ERR_OK, "rank %d fails without a reason",
          group->base.rank);
    pthread_mutex_lock(&group->lock);
    if (!atomic_load(&group->failed)) {
        group->fault = *fault;
        fault_hint(group, &group->fault);
        atomic_store(&group->failed, true);
    }
    pthread_mutex_unlock(&group->lock);
}

void ucx_group_wake(ucx_group_t *group)
{
    if (atomic_load(&group->asleep))
        eventfd_write(group->wakefd, 1);
}

/* ---- calls --------------------------------------------------------------- */

watch_call_t ucx_group_call(const ucx_work_t *work)
{
    return watch_call_of(&work->request, work->number,
                         node_work_is_active(&work->node) &&
                             atomic_load(&work->node.way) == NODE_ZCOPY);
}

void ucx_group_sleeps(ucx_group_t *group, const ucx_work_t *work)
{
    watch_call_t call = ucx_group_call(work);

    pthread_mutex_lock(&group->lock);
    group->slept = call;
    pthread_mutex_unlock(&group->lock);
}

/* ---- what the watch asks ------------------------------------------------- */

/* Fill in the works of the node stage: the oldest one, and its call if the
 * owner sleeps because of it. Returns its number. */
static uint64_t view_node(ucx_group_t *group, watch_view_t *view)
{
    uint64_t oldest = node_oldest(group->node, &view->since);
    watch_call_t call;

    pthread_mutex_lock(&group->lock);
    call = group->slept;
    pthread_mutex_unlock(&group->lock);
    if (call.number == oldest + 1) {
        view->call = call;
        view->called = view->since;
    }
    view->oldest = view->newest = oldest;
    view->driven = oldest != WATCH_NONE && atomic_load(&group->waiting) > 0;
    return oldest;
}

/* Add the works that the driver carries out. */
static void view_active(const ucx_group_t *group, watch_view_t *view)
{
    for (int i = 0; i < UCX_ACTIVE; i++) {
        const ucx_work_t *work = group->active[i].work;

        if (work == NULL)
            continue;
        view->driven = true;
        if (work->number < view->oldest) {
            view->oldest = work->number;
            view->since = work->started;
        }
        if (view->newest == WATCH_NONE || work->number > view->newest)
            view->newest = work->number;
        if (view->call.number == 0 || view->call.number > work->number + 1) {
            view->call = ucx_group_call(work);
            view->called = work->started;
        }
        if (work->number < view->finished) {
            view->finished = work->number;
            view->kind = comm_kind_name(work->request.kind);
        }
    }
}

/* Add how far the device is. [ended] is read first, so that a collective which
 * begins between the two reads counts as begun. */
static void view_device(ucx_group_t *group, watch_view_t *view)
{
    pthread_mutex_lock(&group->lock);
    if (group->marks != NULL) {
        view->device.ended = group->marks->ended;
        view->device.begun = group->marks->begun;
    }
    pthread_mutex_unlock(&group->lock);
}

static void view_fill(void *context, watch_view_t *view)
{
    ucx_group_t *group = context;
    double polled = clock_now() - atomic_load(&group->polled);
    uint64_t node;

    check(ucx_net_is_driven(&group->net), "rank %d is asked, and nobody drives",
          group->base.rank);
    view->started = atomic_load(&group->submitted);
    view->progress = atomic_load(&group->progress);
    view->moves = group->net.moves + node_progress_count(group->node);
    view->step = atomic_load(&group->step);
    view->phase = atomic_load(&group->phase);
    view->waiting = atomic_load(&group->waiting) > 0 ||
                    polled < 2 * watch_interval(group->base.timeout);
    node = view_node(group, view);
    view->finished = view->started < node ? view->started : node;
    if (group->taken < atomic_load(&group->queued) &&
        group->queue[group->taken % COMM_WORKS_MAX]->number < view->finished)
        view->finished = group->queue[group->taken % COMM_WORKS_MAX]->number;
    view_active(group, view);
    view_device(group, view);
}

static bool note_send(void *context, int rank, const watch_note_t *note)
{
    ucx_group_t *group = context;

    return ucx_notes_send(&group->net, rank, note);
}

static void watch_failed(void *context, const err_t *fault)
{
    ucx_group_fail(context, fault);
}

static void watch_resumed(void *context, double now)
{
    ucx_group_t *group = context;

    for (int i = 0; i < UCX_ACTIVE; i++)
        if (group->active[i].work != NULL)
            group->active[i].work->started = now;
    node_clocks_reset(group->node, now);
}

err_code_t ucx_group_watch(ucx_group_t *group, err_t *err)
{
    watch_config_t config = {.rank = group->base.rank,
                             .size = group->base.size,
                             .timeout = group->base.timeout,
                             .hellos = group->base.hellos,
                             .context = group,
                             .view = view_fill,
                             .send = note_send,
                             .fail = watch_failed,
                             .resumed = watch_resumed};
    err_code_t rc = watch_open(&config, clock_now(), &group->watch, err);

    group->net.watch = group->watch;
    return rc;
}
