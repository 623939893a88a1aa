/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/staged_group.h"

/* Number of inner collectives in flight. */
#define SENDS 2

static staged_slot_t *slot_at(staged_group_t *group, const staged_cursor_t *at)
{
    return &group->slots[at->count % STAGED_SLOTS];
}

/* ---- faults -------------------------------------------------------------- */

/* Store the fault, unless there is one. Returns whether it was stored. */
static bool fault_store(staged_group_t *group, const err_t *fault)
{
    bool first;

    check(fault->code != ERR_OK, "rank %d fails without a reason",
          group->base.rank);
    pthread_mutex_lock(&group->lock);
    first = !atomic_load(&group->failed);
    if (first) {
        group->fault = *fault;
        atomic_store(&group->failed, true);
    }
    pthread_cond_broadcast(&group->asked);
    pthread_mutex_unlock(&group->lock);
    return first;
}

/* If the inner group has failed, waits for the device end for that reason. Then
 * the fault of the inner group is the cause, and not this rank. */
void staged_group_fail(staged_group_t *group, const err_t *fault)
{
    err_t known = ERR_INIT;

    if (comm_group_check(group->inner, &known) != ERR_OK)
        (void)fault_store(group, &known);
    else if (fault_store(group, fault) && group->inner->ops->fail != NULL)
        group->inner->ops->fail(group->inner, fault);
}

void staged_device_failed(staged_group_t *group, const err_t *reason)
{
    err_t fault = ERR_INIT;

    comm_fault_own(&group->base, reason, &fault);
    staged_group_fail(group, &fault);
}

err_code_t staged_group_fault(staged_group_t *group, err_t *err)
{
    err_code_t rc;

    pthread_mutex_lock(&group->lock);
    rc = err_copy(err, &group->fault);
    pthread_mutex_unlock(&group->lock);
    return rc;
}

/* ---- stations ------------------------------------------------------------ */

static void cursor_advance(staged_group_t *group, staged_cursor_t *at)
{
    at->count++;
    if (++at->segment < staged_work_at(group, at->work)->segments)
        return;
    at->work++;
    at->segment = 0;
}

static err_code_t spans_copy(staged_group_t *group,
                             const staged_segment_t *segment, bool in,
                             err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < segment->span_count; i++) {
        const staged_span_t *span = &segment->spans[i];

        if (in && span->in)
            rc = dev_copy(group->in, span->host, span->device, span->bytes,
                          DEV_DEV_TO_HOST, err);
        else if (!in && span->out)
            rc = dev_copy(group->out, span->device, span->host, span->bytes,
                          DEV_HOST_TO_DEV, err);
    }
    return rc;
}

static err_code_t segment_fill(staged_group_t *group, err_t *err)
{
    const staged_work_t *work = staged_work_at(group, group->fill.work);
    staged_slot_t *slot = slot_at(group, &group->fill);
    char *host = (char *)comm_arena_data(group->arena) +
                 group->fill.count % STAGED_SLOTS * group->shape.room;
    err_code_t rc = ERR_OK;

    if (slot->used)
        rc = dev_event_wait(slot->out, err);
    if (rc == ERR_OK && group->fill.segment == 0 && work->request.after != NULL)
        rc = dev_event_wait_on(work->request.after, group->in, err);
    if (rc != ERR_OK)
        return rc;
    staged_segment_make(&group->shape, &work->request, group->fill.segment,
                        host, &slot->segment);
    rc = spans_copy(group, &slot->segment, true, err);
    if (rc == ERR_OK)
        rc = dev_event_record(slot->in, group->in, err);
    cursor_advance(group, &group->fill);
    return rc;
}

/* The event comes behind that of the request, so from here on the device's
 * memory may be written, too. *lost: it is the inner group that failed. */
static err_code_t segment_send(staged_group_t *group, bool *lost, err_t *err)
{
    staged_slot_t *slot = slot_at(group, &group->send);
    err_code_t rc = dev_event_wait(slot->in, err);

    if (rc != ERR_OK)
        return rc;
    slot->work = NULL;
    *lost = group->inner->ops->start(group->inner, &slot->segment.request,
                                     &slot->work, err) == COMM_FAILED;
    if (*lost)
        return err->code;
    cursor_advance(group, &group->send);
    return ERR_OK;
}

static err_code_t segment_drain(staged_group_t *group, bool *lost, err_t *err)
{
    const uint64_t number = group->drain.work;
    staged_work_t *work = staged_work_at(group, number);
    staged_slot_t *slot = slot_at(group, &group->drain);
    err_code_t rc = comm_work_wait(slot->work, err);

    slot->work = NULL;
    *lost = rc != ERR_OK;
    if (rc == ERR_OK)
        rc = spans_copy(group, &slot->segment, false, err);
    if (rc == ERR_OK)
        rc = dev_event_record(slot->out, group->out, err);
    slot->used = true;
    cursor_advance(group, &group->drain);
    if (rc != ERR_OK || group->drain.work == number)
        return rc;
    rc = dev_event_record(work->done, group->out, err);
    if (rc != ERR_OK)
        return rc;
    pthread_mutex_lock(&group->lock);
    atomic_store(&work->state, COMM_DONE);
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    return ERR_OK;
}

/* ---- the loop ------------------------------------------------------------ */

/* Wait until there is a segment. False: this rank leaves, or the group has
 * failed. Sets *fills: a work has a segment to fill. */
static bool segment_await(staged_group_t *group, bool *fills)
{
    bool ends;

    pthread_mutex_lock(&group->lock);
    while (group->fill.work == group->started &&
           group->drain.count == group->fill.count && !group->leaving &&
           !atomic_load(&group->failed))
        pthread_cond_wait(&group->asked, &group->lock);
    *fills = group->fill.work < group->started;
    ends = atomic_load(&group->failed) ||
           (!*fills && group->drain.count == group->fill.count);
    pthread_mutex_unlock(&group->lock);
    return !ends;
}

/* A work is sent when nothing before it is with the inner group any more: what
 * it waits for on the device does not delay the end of the work before. */
static bool sends(const staged_group_t *group)
{
    const staged_cursor_t *send = &group->send, *drain = &group->drain;

    return send->count < group->fill.count &&
           send->count - drain->count < SENDS &&
           (send->segment > 0 || send->work == drain->work);
}

/* Take one segment through one station. */
static void segment_move(staged_group_t *group, bool fills)
{
    err_t err = ERR_INIT;
    bool lost = false;
    err_code_t rc;

    if (fills && group->fill.count - group->drain.count < STAGED_SLOTS)
        rc = segment_fill(group, &err);
    else if (sends(group))
        rc = segment_send(group, &lost, &err);
    else
        rc = segment_drain(group, &lost, &err);
    if (rc != ERR_OK && lost)
        (void)fault_store(group, &err);
    else if (rc != ERR_OK)
        staged_device_failed(group, &err);
}

/* After a fault: when this returns, nothing accesses the data of the works any
 * more. */
static void works_end(staged_group_t *group)
{
    for (; group->drain.count < group->send.count;
         cursor_advance(group, &group->drain))
        (void)comm_work_wait(slot_at(group, &group->drain)->work, NULL);
    (void)dev_stream_wait(group->in, NULL);
    (void)dev_stream_wait(group->out, NULL);
    pthread_mutex_lock(&group->lock);
    for (int i = 0; i < COMM_WORKS_MAX; i++)
        if (atomic_load(&group->works[i].state) == COMM_PENDING)
            atomic_store(&group->works[i].state, COMM_FAILED);
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
}

static void *thread_main(void *argument)
{
    staged_group_t *group = argument;
    bool fills;

    log_rank_set(group->base.rank);
    thread_prompt();
    while (segment_await(group, &fills))
        segment_move(group, fills);
    if (atomic_load(&group->failed))
        works_end(group);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------ */

err_code_t staged_thread_start(staged_group_t *group, err_t *err)
{
    err_code_t rc =
        thread_start("cddp-staged", thread_main, group, &group->thread, err);

    group->running = rc == ERR_OK;
    return rc;
}

void staged_thread_stop(staged_group_t *group)
{
    bool pending = false;
    err_t fault = ERR_INIT;

    if (!group->running)
        return;
    for (int i = 0; i < COMM_WORKS_MAX; i++)
        pending |= group->works[i].busy &&
                   atomic_load(&group->works[i].state) == COMM_PENDING;
    comm_fault_left(&group->base, &fault);
    if (pending)
        staged_group_fail(group, &fault);
    pthread_mutex_lock(&group->lock);
    group->leaving = true;
    pthread_cond_signal(&group->asked);
    pthread_mutex_unlock(&group->lock);
    pthread_join(group->thread, NULL);
}
