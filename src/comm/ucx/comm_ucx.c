/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The backend ucx: the ranks are processes (or threads). Each has one UCP
 * worker, which its comm thread or its owner drives. This file has the owner's
 * part: it fills the table of works, waits, opens and closes. See ucx_group.h
 * for an overview.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/node/node_stage.h"
#include "comm/ucx/ucx_drive.h"
#include "comm/ucx/ucx_node.h"
#include "comm/ucx/ucx_thread.h"

/* Number of checks of a work before its owner blocks, if there is a core for
 * them. */
#define SPINS 4000

static err_code_t group_fault(ucx_group_t *group, err_t *err)
{
    err_code_t rc;

    pthread_mutex_lock(&group->lock);
    rc = err_copy(err, &group->fault);
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
    comm_request_copy(request, work->views, &work->request);
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

/* What the owner knows of the comm thread during a wait. */
typedef struct hang {
    double ticked;  /* the last value of group->ticked */
    double seconds; /* for which it has not changed */
} hang_t;

/* Fail the group if the comm thread hangs. The comm thread finds all other
 * faults. So the owner checks that it ticks within twice the timeout.
 * [elapsed]: seconds since the last check; if they are many, this process did
 * not run. */
static void thread_check(ucx_group_t *group, hang_t *hang, double elapsed)
{
    double ticked = atomic_load(&group->ticked);
    int name = comm_rank_name(&group->base, group->base.rank);
    const char *host = group->base.hellos[group->base.rank].host;
    err_t fault = ERR_INIT;

    if (ticked > hang->ticked || elapsed > group->base.timeout / 2)
        hang->seconds = 0;
    else
        hang->seconds += elapsed;
    hang->ticked = ticked;
    if (hang->seconds < 2 * group->base.timeout)
        return;
    err_set_peer(&fault, name, host,
                 "the comm thread of rank %d on %s hangs inside UCX", name,
                 host);
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

/* Wait until the comm thread has done its part of [work], or hangs. */
static void wait_block(ucx_group_t *group, ucx_work_t *work)
{
    double tick = watch_interval(group->base.timeout);
    hang_t hang = {0};

    ucx_group_wake(group);
    for (int i = 0; group->local.spin && i < SPINS; i++)
        if (atomic_load(&work->state) != COMM_PENDING)
            return;
    while (atomic_load(&work->state) == COMM_PENDING &&
           !atomic_load(&group->hung)) {
        double before = clock_now();

        if (node_busy(group->node)) /* other ranks may wait for these works */
            node_attend(group->node, &work->state);
        else
            wait_changed(group, work, before + tick);
        thread_check(group, &hang, clock_now() - before);
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
    if (node_stage_needs_help(group->node)) /* during the wait nobody woke it */
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

static void ucx_fail(comm_group_t *base, const err_t *fault)
{
    ucx_group_t *group = (ucx_group_t *)base;

    ucx_group_fail(group, fault);
    ucx_group_wake(group);
}

static void ucx_marks(comm_group_t *base, const volatile comm_marks_t *marks)
{
    ucx_group_t *group = (ucx_group_t *)base;

    pthread_mutex_lock(&group->lock);
    group->marks = marks;
    pthread_mutex_unlock(&group->lock);
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

static void net_failed(void *context, const err_t *fault)
{
    ucx_group_fail(context, fault);
}

static void ucx_close(comm_group_t *base)
{
    ucx_group_t *group = (ucx_group_t *)base;

    if (group->running && !ucx_thread_stop(group)) {
        log_warn("comm", "the comm thread hangs inside UCX: its memory is "
                         "left behind");
        return;
    }
    if (atomic_load(&group->failed))
        ucx_local_end(&group->net, &group->fault);
    ucx_local_close(&group->net);
    ucx_thread_close(group);
    /* UCX (1.13) aborts the process if a worker with unfinished messages is
     * destroyed. So after a fault the worker stays until the process ends. */
    if (group->running && !group->clean)
        return;
    ucx_net_close(&group->net);
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++)
            ucx_lane_close(&group->active[i].lanes[j]);
    ucx_node_close(group);
    node_place_close(&group->local.place);
    watch_close(group->watch);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    pthread_mutex_destroy(&group->drive);
    mem_free(group);
}

static err_code_t lanes_open(ucx_group_t *group, err_t *err)
{
    ucx_lane_config_t config = {.net = &group->net,
                                .node = group->node,
                                .place = &group->local.place,
                                .parts = group->parts};
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < UCX_ACTIVE; i++)
        for (int j = 0; rc == ERR_OK && j < COMM_LANES; j++)
            rc = ucx_lane_open(&group->active[i].lanes[j], &config, err);
    return rc;
}

static err_code_t group_new(const comm_config_t *config, const comm_oob_t *oob,
                            comm_hello_t *hellos, ucx_group_t **out, err_t *err)
{
    ucx_group_t *group;
    err_code_t rc = mem_new(ucx_group_t, 1, "comm group", &group, err);

    if (rc != ERR_OK)
        return rc;
    group->base = (comm_group_t){.ops = &comm_ucx_ops,
                                 .rank = oob->rank,
                                 .size = oob->size,
                                 .timeout = config->timeout,
                                 .table = config->table,
                                 .hellos = hellos};
    group->net.base = &group->base;
    group->net.context = group;
    group->net.fail = net_failed;
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
    err_code_t rc = group_new(config, oob, hellos, &group, err);

    if (rc != ERR_OK)
        return rc;
    rc = ucx_net_open(&group->net, oob, &group->local, err);
    if (rc == ERR_OK)
        rc = ucx_group_watch(group, err);
    if (rc == ERR_OK)
        rc = ucx_node_new(group, err);
    if (rc == ERR_OK)
        rc = lanes_open(group, err);
    /* This is the last exchange of [oob]. A rank that had no memory for what
     * was opened before does not enter it, so [oob] can tell the others. */
    if (rc == ERR_OK)
        rc = ucx_net_meet(&group->net, oob, err);
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

static const char *ucx_route(const comm_group_t *base)
{
    return ucx_net_route(&((const ucx_group_t *)base)->net);
}

const comm_ops_t comm_ucx_ops = {
    .name = "ucx",
    .own_net = ucx_net_is_own,
    .open = ucx_open,
    .close = ucx_close,
    .report = ucx_report,
    .check = ucx_check,
    .route = ucx_route,
    .start = ucx_start,
    .poll = ucx_poll,
    .wait = ucx_wait,
    .fail = ucx_fail,
    .marks = ucx_marks,
    .allreduce_plan = ucx_allreduce_plan,
    .arena_open = ucx_arena_open,
    .arena_close = ucx_arena_close,
};
