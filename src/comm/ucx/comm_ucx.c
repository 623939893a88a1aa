/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The ranks are processes (or threads). Each has one UCP worker, which its comm
 * thread or its owner drives. This file has the owner's part: it fills the
 * table of works, waits, opens and closes. See ucx_group.h for an overview.
 */
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/node/node_stage.h"
#include "comm/ucx/ucx_group.h"
#include "comm/ucx/ucx_node.h"

/* How often to check a work before blocking, if there is a core for it. */
#define SPINS 4000

static err_code_t group_fault(ucx_group_t *group, err_t *err)
{
    err_code_t rc;

    pthread_mutex_lock(&group->lock);
    rc = group->fault.code;
    if (err != NULL)
        *err = group->fault;
    pthread_mutex_unlock(&group->lock);
    check(rc != ERR_OK, "rank %d has failed without a fault", group->base.rank);
    return rc;
}

/* ---- start, poll, wait --------------------------------------------------- */

static void work_fill(ucx_group_t *group, ucx_work_t *work,
                      const comm_request_t *request)
{
    check(!work->busy && !node_work_is_active(&work->node),
          "collective %llu takes the place of %llu, which is not over",
          (unsigned long long)group->started, (unsigned long long)work->number);
    work->base.group = &group->base;
    work->number = group->started;
    work->busy = true;
    work->queued = true;
    work->request = *request;
    if (request->kind == COMM_TREE) {
        int count =
            comm_tree_views(request->first, request->held, request->leaves);

        for (int i = 0; i < count; i++)
            work->views[i] = request->views[i];
        work->request.views = work->views;
    }
    atomic_store(&work->state, COMM_PENDING);
}

static comm_state_t ucx_start(comm_group_t *base, const comm_request_t *request,
                              comm_work_t **out, err_t *err)
{
    ucx_group_t *group = (ucx_group_t *)base;
    ucx_work_t *work = &group->works[group->started % COMM_WORKS_MAX];
    uint64_t queued;

    if (base->size == 1)
        return comm_self_ops.start(base, request, out, err);
    if (atomic_load(&group->failed)) {
        group_fault(group, err);
        return COMM_FAILED;
    }
    if (work->busy) {
        err_set(err, ERR_CONFIG,
                "rank %d has %d collectives in flight: wait for some first",
                base->rank, COMM_WORKS_MAX);
        return COMM_FAILED;
    }
    work_fill(group, work, request);
    atomic_fetch_add(&group->progress, 1);
    ucx_node_choose(group, work);
    if (work->plan.way != COMM_WAY_NET)
        work->queued = ucx_node_start(group, work);
    if (work->queued) {
        work->started = clock_now();
        queued = atomic_load(&group->queued);
        group->queue[queued % COMM_WORKS_MAX] = work;
        atomic_store(&group->queued, queued + 1);
    }
    atomic_store(&group->submitted, ++group->started);
    if (work->queued && !base->waits)
        ucx_group_wake(group);
    *out = &work->base;
    return COMM_PENDING;
}

static comm_state_t ucx_poll(comm_work_t *base)
{
    ucx_work_t *work = (ucx_work_t *)base;
    ucx_group_t *group = (ucx_group_t *)base->group;
    comm_state_t state = (comm_state_t)atomic_load(&work->state);

    if (node_work_is_active(&work->node) &&
        (!work->queued || state == COMM_DONE))
        state = node_poll(group->node, &work->node);
    if (state == COMM_PENDING)
        atomic_store(&group->polled, clock_now());
    return state;
}

/* Fail if the comm thread hangs. It finds all other faults, but not its own: so
 * the owner checks that it has ticked within twice the timeout, not counting
 * times when this process did not run. */
static void thread_check(ucx_group_t *group, double *ticked, double *stuck,
                         double elapsed)
{
    double now = atomic_load(&group->ticked);
    int name = comm_rank_name(&group->base, group->base.rank);
    err_t fault = ERR_INIT;

    if (now > *ticked || elapsed > group->base.timeout / 2)
        *stuck = 0;
    else
        *stuck += elapsed;
    *ticked = now;
    if (*stuck < 2 * group->base.timeout)
        return;
    err_set_peer(&fault, name, group->base.hellos[group->base.rank].host,
                 "the comm thread of rank %d on %s hangs inside UCX", name,
                 group->base.hellos[group->base.rank].host);
    ucx_group_fail(group, &fault);
    atomic_store(&group->hung, true);
}

/* Wait until the state of [work] has changed, at most until [instant]. */
static void wait_changed(ucx_group_t *group, ucx_work_t *work, double instant)
{
    pthread_mutex_lock(&group->lock);
    if (atomic_load(&work->state) == COMM_PENDING)
        thread_cond_wait(&group->changed, &group->lock, instant);
    pthread_mutex_unlock(&group->lock);
}

static void wait_block(ucx_group_t *group, ucx_work_t *work)
{
    double tick = watch_interval(group->base.timeout);
    double ticked = 0, stuck = 0;

    ucx_group_wake(group);
    for (int i = 0; group->spin && i < SPINS; i++)
        if (atomic_load(&work->state) != COMM_PENDING)
            return;
    while (atomic_load(&work->state) == COMM_PENDING &&
           !atomic_load(&group->hung)) {
        double before = clock_now();

        if (node_busy(group->node)) /* other ranks may wait for these works */
            node_attend(group->node, &work->state);
        else
            wait_changed(group, work, before + tick);
        thread_check(group, &ticked, &stuck, clock_now() - before);
    }
}

static err_code_t ucx_wait(comm_work_t *base, err_t *err)
{
    ucx_work_t *work = (ucx_work_t *)base;
    ucx_group_t *group = (ucx_group_t *)base->group;
    bool done = true;

    check(work->busy && work == &group->works[work->number % COMM_WORKS_MAX],
          "collective %llu is waited for, and is over",
          (unsigned long long)work->number);
    atomic_fetch_add(&group->waiting, 1);
    node_stage_present(group->node, true);
    if (work->queued) {
        if (!ucx_drive_wait(group, work))
            wait_block(group, work);
        done = atomic_load(&work->state) == COMM_DONE;
    }
    if (node_work_is_active(&work->node))
        done = node_wait(group->node, &work->node) && done;
    node_stage_present(group->node, false);
    if (node_stage_needs_help(group->node)) /* nobody wakes it during a wait */
        ucx_group_wake(group);
    atomic_fetch_add(&group->progress, 1);
    check(atomic_load(&group->waiting) > 0, "%d waits are under way",
          atomic_load(&group->waiting));
    atomic_fetch_sub(&group->waiting, 1);
    check(!done || !node_work_is_active(&work->node),
          "collective %llu is done, and its node is at work on it",
          (unsigned long long)work->number);
    work->busy = false;
    if (done)
        return ERR_OK;
    return group_fault(group, err);
}

static void ucx_report(comm_group_t *base, int64_t step, const char *phase)
{
    ucx_group_t *group = (ucx_group_t *)base;

    atomic_store(&group->step, step);
    atomic_store(&group->phase, phase);
    atomic_fetch_add(&group->progress, 1);
}

static err_code_t ucx_check(comm_group_t *base, err_t *err)
{
    ucx_group_t *group = (ucx_group_t *)base;

    return atomic_load(&group->failed) ? group_fault(group, err) : ERR_OK;
}

static void ucx_allreduce_plan(const comm_group_t *base, const void *data,
                               size_t count, comm_type_t type, comm_plan_t *out)
{
    const ucx_group_t *group = (const ucx_group_t *)base;
    comm_request_t request = {.kind = COMM_ALLREDUCE,
                              .data = (void *)data,
                              .count = count,
                              .type = type};

    *out = ucx_node_plan(group, &request);
}

/* ---- open and close ------------------------------------------------------ */

/* Tell the comm thread to end, and wait for it; false if it hangs. */
static bool thread_stop(ucx_group_t *group)
{
    double end = clock_now() + 2 * group->base.timeout + 5;
    bool ended;

    atomic_store(&group->leaving, true);
    ucx_group_wake(group);
    pthread_mutex_lock(&group->lock);
    while (!group->ended &&
           thread_cond_wait(&group->changed, &group->lock, end))
        continue;
    ended = group->ended;
    pthread_mutex_unlock(&group->lock);
    if (ended)
        pthread_join(group->thread, NULL);
    else
        pthread_detach(group->thread);
    return ended;
}

static void descriptors_close(ucx_group_t *group)
{
    for (int rank = 0; rank < group->base.size; rank++)
        if (group->peers[rank].pidfd >= 0)
            close(group->peers[rank].pidfd);
    if (group->wakefd >= 0)
        close(group->wakefd);
    if (group->epollfd >= 0)
        close(group->epollfd);
}

static void ucx_close(comm_group_t *base)
{
    ucx_group_t *group = (ucx_group_t *)base;

    if (group->running && !thread_stop(group)) {
        log_warn("comm", "the comm thread hangs inside UCX: its memory is "
                         "left behind");
        return;
    }
    ucx_local_end(group);
    descriptors_close(group);
    /* UCX (1.13) aborts the process if a worker with unfinished protocols is
     * destroyed. So after a fault the worker stays until the process ends. */
    if (group->running && !group->clean)
        return;
    ucx_net_close(group);
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++)
            ucx_lane_close(&group->active[i].lanes[j]);
    ucx_node_close(group);
    node_place_close(&group->place);
    watch_close(group->watch);
    mem_free(group->peers);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    pthread_mutex_destroy(&group->drive);
    mem_free(group);
}

static err_code_t lanes_open(ucx_group_t *group, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < UCX_ACTIVE; i++)
        for (int j = 0; rc == ERR_OK && j < COMM_LANES; j++)
            rc = ucx_lane_open(&group->active[i].lanes[j], group, err);
    return rc;
}

static err_code_t group_new(const comm_config_t *config, const comm_oob_t *oob,
                            ucx_group_t **out, err_t *err)
{
    size_t size = (size_t)oob->size;
    ucx_group_t *group;
    err_code_t rc = mem_new(ucx_group_t, 1, "comm group", &group, err);

    if (rc != ERR_OK)
        return rc;
    rc = mem_new(ucx_peer_t, size, "comm peers", &group->peers, err);
    if (rc != ERR_OK) {
        mem_free(group);
        return rc;
    }
    group->base = (comm_group_t){.ops = &comm_ucx_ops,
                                 .rank = oob->rank,
                                 .size = oob->size,
                                 .timeout = config->timeout,
                                 .table = config->table};
    for (size_t i = 0; i < size; i++)
        group->peers[i] = (ucx_peer_t){.group = group, .pidfd = -1};
    group->wakefd = group->epollfd = -1;
    group->fault = (err_t)ERR_INIT;
    atomic_store(&group->polled, -1e9);
    atomic_store(&group->driven, -1e9);
    pthread_mutex_init(&group->drive, NULL);
    pthread_mutex_init(&group->lock, NULL);
    thread_cond_init(&group->changed);
    *out = group;
    return ERR_OK;
}

static err_code_t ucx_open(const comm_config_t *config, const comm_oob_t *oob,
                           comm_hello_t *hellos, comm_group_t **out, err_t *err)
{
    ucx_group_t *group;
    err_code_t rc = group_new(config, oob, &group, err);

    if (rc != ERR_OK)
        return rc;
    group->base.hellos = hellos;
    rc = lanes_open(group, err);
    if (rc == ERR_OK)
        rc = ucx_net_open(group, oob, hellos, err);
    if (rc == ERR_OK)
        rc = ucx_group_watch(group, ucx_notes_send, err);
    if (rc == ERR_OK)
        rc = ucx_node_new(group, err);
    if (rc == ERR_OK)
        rc = ucx_thread_start(group, err);
    if (rc == ERR_OK) /* connect now rather than in the first step */
        rc = comm_barrier(&group->base, err);
    if (rc == ERR_OK)
        rc = ucx_node_open(group, err);
    if (rc == ERR_OK)
        *out = &group->base;
    else
        ucx_close(&group->base);
    return rc;
}

const comm_ops_t comm_ucx_ops = {
    .name = "ucx",
    .own_net = ucx_net_is_own,
    .open = ucx_open,
    .close = ucx_close,
    .report = ucx_report,
    .check = ucx_check,
    .start = ucx_start,
    .poll = ucx_poll,
    .wait = ucx_wait,
    .allreduce_plan = ucx_allreduce_plan,
    .arena_open = ucx_arena_open,
    .arena_close = ucx_arena_close,
};
