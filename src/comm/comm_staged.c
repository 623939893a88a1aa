/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/comm_staged.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/comm_vote.h"
#include "comm/staged_group.h"

/* ---- the owner ----------------------------------------------------------- */

static comm_state_t staged_start(comm_group_t *base,
                                 const comm_request_t *request,
                                 comm_work_t **out, err_t *err)
{
    staged_group_t *group = (staged_group_t *)base;
    staged_work_t *work = staged_work_at(group, group->started);
    bool failed;

    if (work->busy) {
        err_set(err, ERR_CONFIG,
                "rank %d has %d collectives in flight: wait for some first",
                base->rank, COMM_WORKS_MAX);
        return COMM_FAILED;
    }
    pthread_mutex_lock(&group->lock);
    failed = atomic_load(&group->failed);
    if (!failed) {
        work->base.group = base;
        comm_request_copy(request, work->views, &work->request);
        work->segments = staged_segments(&group->shape, request);
        atomic_store(&work->state, COMM_PENDING);
        group->started++;
        pthread_cond_signal(&group->asked);
    }
    pthread_mutex_unlock(&group->lock);
    if (failed) {
        staged_group_fault(group, err);
        return COMM_FAILED;
    }
    work->busy = true;
    *out = &work->base;
    return COMM_PENDING;
}

static comm_state_t staged_poll(comm_work_t *base)
{
    return (comm_state_t)atomic_load(&((staged_work_t *)base)->state);
}

/* Wait until the copies of the result are enqueued, and release the work. */
static err_code_t work_await(comm_work_t *base, err_t *err)
{
    staged_work_t *work = (staged_work_t *)base;
    staged_group_t *group = (staged_group_t *)base->group;

    check(work->busy, "a collective is waited for, and is over");
    pthread_mutex_lock(&group->lock);
    while (atomic_load(&work->state) == COMM_PENDING)
        pthread_cond_wait(&group->changed, &group->lock);
    pthread_mutex_unlock(&group->lock);
    work->busy = false;
    return atomic_load(&work->state) == COMM_DONE
               ? ERR_OK
               : staged_group_fault(group, err);
}

/* A call of dev for [work] failed: fail the group. When this returns, nothing
 * accesses the data any more, as far as the device can be waited for. */
static err_code_t work_failed(staged_work_t *work, const err_t *reason,
                              err_t *err)
{
    staged_group_t *group = (staged_group_t *)work->base.group;

    (void)dev_event_wait(work->done, NULL);
    staged_device_failed(group, reason);
    return staged_group_fault(group, err);
}

static err_code_t staged_wait(comm_work_t *base, err_t *err)
{
    staged_work_t *work = (staged_work_t *)base;
    err_code_t rc = work_await(base, err);
    err_t reason = ERR_INIT;

    if (rc == ERR_OK && dev_event_wait(work->done, &reason) != ERR_OK)
        rc = work_failed(work, &reason, err);
    return rc;
}

static err_code_t staged_wait_on(comm_work_t *base, dev_stream_t *stream,
                                 err_t *err)
{
    staged_work_t *work = (staged_work_t *)base;
    err_code_t rc = work_await(base, err);
    err_t reason = ERR_INIT;

    if (rc == ERR_OK &&
        dev_event_wait_on(work->done, stream, &reason) != ERR_OK)
        rc = work_failed(work, &reason, err);
    return rc;
}

static void staged_report(comm_group_t *base, int64_t step, const char *phase)
{
    comm_group_report(((staged_group_t *)base)->inner, step, phase);
}

static void staged_fail(comm_group_t *base, const err_t *fault)
{
    staged_group_fail((staged_group_t *)base, fault);
}

static err_code_t staged_check(comm_group_t *base, err_t *err)
{
    staged_group_t *group = (staged_group_t *)base;

    return atomic_load(&group->failed) ? staged_group_fault(group, err)
                                       : comm_group_check(group->inner, err);
}

/* ---- close --------------------------------------------------------------- */

static void slots_close(staged_group_t *group)
{
    for (int i = 0; i < STAGED_SLOTS; i++) {
        dev_event_close(group->slots[i].in);
        dev_event_close(group->slots[i].out);
        mem_free(group->slots[i].segment.spans);
        mem_free(group->slots[i].segment.cuts);
    }
    if (group->pinned)
        dev_unpin(group->base.dev, comm_arena_data(group->arena));
    /* A device that was given up may still access pinned memory. */
    if (!group->pinned || !dev_abandoned(group->base.dev))
        comm_arena_close(group->arena);
}

static void staged_close(comm_group_t *base)
{
    staged_group_t *group = (staged_group_t *)base;

    staged_thread_stop(group);
    if (group->in != NULL)
        (void)dev_stream_wait(group->in, NULL);
    if (group->out != NULL)
        (void)dev_stream_wait(group->out, NULL);
    for (int i = 0; i < COMM_WORKS_MAX; i++)
        dev_event_close(group->works[i].done);
    slots_close(group);
    dev_stream_close(group->in);
    dev_stream_close(group->out);
    group->inner->ops->close(group->inner);
    pthread_cond_destroy(&group->asked);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    mem_free(group);
}

/* ---- open ---------------------------------------------------------------- */

static const comm_ops_t comm_staged_ops = {
    .name = "staged",
    .device = true,
    .close = staged_close,
    .report = staged_report,
    .check = staged_check,
    .start = staged_start,
    .poll = staged_poll,
    .wait = staged_wait,
    .wait_on = staged_wait_on,
    .fail = staged_fail,
};

static err_code_t slots_open(staged_group_t *group, err_t *err)
{
    const size_t size = (size_t)group->base.size;
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < STAGED_SLOTS; i++) {
        staged_slot_t *slot = &group->slots[i];

        rc = mem_new(staged_span_t, staged_spans_most(group->base.size),
                     "comm segments", &slot->segment.spans, err);
        if (rc == ERR_OK)
            rc = mem_new(size_t, size + 1, "comm segments", &slot->segment.cuts,
                         err);
        if (rc == ERR_OK)
            rc = dev_event_open(group->base.dev, &slot->in, err);
        if (rc == ERR_OK)
            rc = dev_event_open(group->base.dev, &slot->out, err);
    }
    return rc;
}

/* Open what this rank needs beside the inner group and its arena. */
static err_code_t parts_open(staged_group_t *group, err_t *err)
{
    dev_device_t *dev = group->base.dev;
    err_code_t rc = slots_open(group, err);

    if (rc == ERR_OK)
        rc = dev_pin(dev, comm_arena_data(group->arena),
                     STAGED_SLOTS * group->shape.room, err);
    group->pinned = rc == ERR_OK;
    if (rc == ERR_OK)
        rc = dev_stream_open(dev, DEV_STREAM_COPY, &group->in, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(dev, DEV_STREAM_COPY, &group->out, err);
    for (int i = 0; rc == ERR_OK && i < COMM_WORKS_MAX; i++)
        rc = dev_event_open(dev, &group->works[i].done, err);
    return rc == ERR_OK ? staged_thread_start(group, err) : rc;
}

size_t comm_staged_bytes(int ranks)
{
    const size_t least = staged_room_least(ranks);

    return STAGED_SLOTS *
           (least > STAGED_SLOT_BYTES ? least : STAGED_SLOT_BYTES);
}

static void group_fill(staged_group_t *group, comm_group_t *inner,
                       dev_device_t *dev)
{
    group->base = (comm_group_t){.ops = &comm_staged_ops,
                                 .rank = inner->rank,
                                 .size = inner->size,
                                 .timeout = inner->timeout,
                                 .hellos = inner->hellos,
                                 .table = inner->table,
                                 .dev = dev};
    group->inner = inner;
    group->shape =
        (staged_shape_t){.rank = inner->rank,
                         .size = inner->size,
                         .room = comm_staged_bytes(inner->size) / STAGED_SLOTS};
    group->fault = (err_t)ERR_INIT;
    pthread_mutex_init(&group->lock, NULL);
    thread_cond_init(&group->asked);
    thread_cond_init(&group->changed);
}

/* Tell the other ranks whether this rank can join ([mine] has its error). If a
 * rank cannot, all ranks get its error. */
static err_code_t join_vote(comm_group_t *inner, err_t *mine, err_t *err)
{
    if (mine->code != ERR_OK)
        err_prefix(mine, "cannot join");
    return comm_vote(inner, mine, err);
}

err_code_t comm_staged_open(comm_group_t *inner, dev_device_t *dev,
                            comm_group_t **out, err_t *err)
{
    staged_group_t *group = NULL;
    err_t mine = ERR_INIT;
    err_code_t rc;

    if (mem_new(staged_group_t, 1, "comm group", &group, &mine) == ERR_OK)
        group_fill(group, inner, dev);
    rc = join_vote(inner, &mine, err);
    if (rc == ERR_OK) {
        rc = comm_arena_open(inner, STAGED_SLOTS * group->shape.room,
                             &group->arena, &mine);
        if (rc == ERR_OK)
            (void)parts_open(group, &mine);
        rc = join_vote(inner, &mine, err);
    }
    if (rc == ERR_OK)
        *out = &group->base;
    else if (group != NULL)
        staged_close(&group->base);
    else
        inner->ops->close(inner);
    return rc;
}
