/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The works that the driver of a ucx group carries out: see ucx_drive.h. */
#include "base/check.h"
#include "comm/ucx/ucx_drive.h"

/* Maximum seconds for requests to end after a fault. */
#define QUIET_SECONDS 0.5

/* ---- begin and end ------------------------------------------------------- */

static void work_begin(ucx_group_t *group, ucx_active_t *active,
                       ucx_work_t *work)
{
    int lanes = work->plan.lanes;
    ucx_algorithm_t algorithm = ucx_work_algorithm(work);
    watch_call_t call = ucx_group_call(work);
    uint32_t digest = watch_begin(group->watch, &call, work->started);

    check(active->work == NULL && group->active_count < UCX_ACTIVE &&
              lanes >= 1 && lanes <= COMM_LANES,
          "collective %llu begins with %d lanes beside %d others",
          (unsigned long long)work->number, lanes, group->active_count);
    check(atomic_load(&work->state) == COMM_PENDING && work->queued,
          "collective %llu begins in state %d",
          (unsigned long long)work->number, atomic_load(&work->state));
    for (int i = 0; i < UCX_ACTIVE; i++)
        check(group->active[i].work == NULL ||
                  group->active[i].work->number < work->number,
              "collective %llu begins after collective %llu",
              (unsigned long long)work->number,
              (unsigned long long)group->active[i].work->number);
    active->work = work;
    for (int i = 0; i < lanes; i++)
        ucx_lane_begin(&active->lanes[i], work, algorithm, digest, i);
    group->active_count++;
}

static void work_end(ucx_group_t *group, ucx_active_t *active,
                     comm_state_t state)
{
    ucx_work_t *work = active->work;

    check(work != NULL && group->active_count > 0,
          "a collective ends, of %d that are under way", group->active_count);
    for (int i = 0; i < COMM_LANES; i++)
        check(active->lanes[i].pending == 0 || state == COMM_FAILED,
              "collective %llu ends with %u requests in lane %d",
              (unsigned long long)work->number, active->lanes[i].pending, i);
    check(state != COMM_PENDING && atomic_load(&work->state) == COMM_PENDING,
          "collective %llu goes from state %d to %d",
          (unsigned long long)work->number, atomic_load(&work->state),
          (int)state);
    active->work = NULL;
    group->active_count--;
    pthread_mutex_lock(&group->lock);
    atomic_store(&work->state, (int)state);
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    if (node_is_open(group->node)) /* the owner may sleep in node_attend */
        node_notify(group->node);
}

bool ucx_works_admit(ucx_group_t *group)
{
    bool admitted = false;

    check(group->taken <= atomic_load(&group->queued) &&
              atomic_load(&group->queued) - group->taken <= COMM_WORKS_MAX,
          "%llu works were taken of %llu that were queued",
          (unsigned long long)group->taken,
          (unsigned long long)atomic_load(&group->queued));
    for (int i = 0; i < UCX_ACTIVE; i++) {
        if (group->taken >= atomic_load(&group->queued))
            break;
        if (group->active[i].work != NULL)
            continue;
        work_begin(group, &group->active[i],
                   group->queue[group->taken++ % COMM_WORKS_MAX]);
        admitted = true;
    }
    if (admitted)
        watch_check_left(group->watch);
    return admitted;
}

/* ---- lanes --------------------------------------------------------------- */

/* Call the algorithm of [lane] until it waits. Returns whether it moved. */
static bool lane_advance(const ucx_group_t *group, ucx_lane_t *lane)
{
    bool moved = false;

    lane->idle = false;
    while (lane->alive && lane->pending == 0 && !lane->broken && !lane->idle &&
           !atomic_load(&group->failed)) {
        lane->alive = lane->algorithm(&lane->task);
        check(lane->alive || lane->pending == 0,
              "collective %llu is done with %u requests outstanding",
              (unsigned long long)lane->task.number, lane->pending);
        moved |= !lane->idle;
    }
    return moved;
}

bool ucx_works_advance(ucx_group_t *group)
{
    bool moved = false;

    for (int i = 0; i < UCX_ACTIVE; i++) {
        ucx_active_t *active = &group->active[i];
        bool alive = false;

        if (active->work == NULL)
            continue;
        for (int j = 0; j < COMM_LANES; j++) {
            moved |= lane_advance(group, &active->lanes[j]);
            alive |= active->lanes[j].alive || active->lanes[j].pending > 0;
        }
        if (!alive && !atomic_load(&group->failed))
            work_end(group, active, COMM_DONE);
    }
    return moved;
}

/* ---- after a fault ------------------------------------------------------- */

static unsigned lanes_pending(const ucx_group_t *group)
{
    unsigned pending = 0;

    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++)
            pending += group->active[i].lanes[j].pending;
    return pending;
}

/* Tell the other ranks of the fault, and cancel the messages. */
static void fault_begin(ucx_group_t *group, double now)
{
    check(atomic_load(&group->failed) && group->fault.code != ERR_OK,
          "rank %d ends its works without a fault", group->base.rank);
    group->failed_at = now;
    watch_tell(group->watch, &group->fault);
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++) {
            group->active[i].lanes[j].alive = false;
            ucx_lane_cancel(&group->active[i].lanes[j]);
        }
}

/* If UCX does not release the memory of the works in time (a large send to a
 * dead rank), the worker is never driven again, so that nothing more moves. */
void ucx_works_fail(ucx_group_t *group, double now)
{
    if (group->failed_at <= 0)
        fault_begin(group, now);
    if (!group->quiet) {
        if ((lanes_pending(group) > 0 || !watch_has_told(group->watch)) &&
            now - group->failed_at < QUIET_SECONDS)
            return;
        group->frozen = lanes_pending(group) > 0;
        group->quiet = true;
    }
    while (ucx_works_admit(group) || group->active_count > 0)
        for (int i = 0; i < UCX_ACTIVE; i++)
            if (group->active[i].work != NULL)
                work_end(group, &group->active[i], COMM_FAILED);
}
