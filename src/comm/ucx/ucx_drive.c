/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Driving a ucx group: carry out works, let UCX make progress, check deadlines.
 * The thread that holds the lock `drive` does this. It is the comm thread,
 * except while the owner waits for the last collective that it started: then
 * the owner drives itself, as each hand-over between threads costs more than a
 * small message. The comm thread takes over when the owner leaves works
 * unfinished, and a moment after the owner's last wait.
 *
 * Between events the driver sleeps in epoll, on the worker's descriptor, an
 * eventfd for new works, and the pidfds of ranks of this node. While works are
 * in flight and a core is free for it, it first spins for a short time.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "comm/comm.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_wakeup.h"
#include "comm/node/node_zcopy.h"
#include "comm/ucx/ucx_group.h"

/* Turns that a driver with its own core makes without sched_yield: each call
 * takes a large part of the time of a small message. */
#define LOOKS 100
#define CLOCK_LOOKS 8
/* After this number of sleeps, try to spin for the full time again. */
#define PROBE 64

/* Maximum seconds for requests to end after a fault. */
#define QUIET_SECONDS 0.5

/* For this number of seconds after a wait, the owner's next wait is
 * expected. */
#define LINGER_SECONDS 1e-3
#define LONG_AGO (-1e9)
#define PARK_MOST 8 /* maximum pause in milliseconds */

/* Number of attempts of the owner to get `drive` before it leaves the work to
 * the comm thread. */
#define ASKS 400

/* After collectives of more elements, UCX may hold bytes that are not sent yet.
 * (For small ones, checking this would cost more than it saves.) */
#define LARGE ((size_t)64 << 10)

/* ---- works --------------------------------------------------------------- */

static void work_begin(ucx_group_t *group, ucx_active_t *active,
                       ucx_work_t *work)
{
    int lanes = work->plan.lanes;
    ucx_algorithm_t algorithm = ucx_algorithm(work);
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
        ucx_lane_begin(&active->lanes[i], work, algorithm, digest, i, lanes);
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
    if (node_is_open(group->node)) /* see node_attend */
        node_notify(group->node);
}

/* Take new works of the owner, in the order of their numbers. */
static bool works_admit(ucx_group_t *group)
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

static bool lane_advance(ucx_group_t *group, ucx_lane_t *lane)
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

static bool works_advance(ucx_group_t *group)
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

/* Fail the works when the other ranks have been told and UCX no longer uses the
 * memory of the works. If UCX does not release it in time (a large send to a
 * dead rank), the worker is never driven again, so that nothing more moves. */
static void fault_step(ucx_group_t *group, double now)
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
    while (works_admit(group) || group->active_count > 0)
        for (int i = 0; i < UCX_ACTIVE; i++)
            if (group->active[i].work != NULL)
                work_end(group, &group->active[i], COMM_FAILED);
}

/* ---- sleeping ------------------------------------------------------------ */

static void event_take(ucx_group_t *group, int which)
{
    eventfd_t count;

    if (which == UCX_EVENT_WAKE) {
        (void)!eventfd_read(group->wakefd, &count);
    } else if (which == UCX_EVENT_BELL) {
        node_wakeup_clear(group->node);
    } else if (which >= 0) { /* the process of this rank has ended */
        epoll_ctl(group->epollfd, EPOLL_CTL_DEL, group->peers[which].pidfd,
                  NULL);
        /* A rank that is no neighbour may have left without sending us a
         * good-bye. If it died, its neighbours tell us. */
        if (watch_is_neighbour(group->watch, which))
            ucx_group_lost(group, which);
    }
}

static bool owner_calls(ucx_group_t *group, bool leaving)
{
    return (group->active_count < UCX_ACTIVE &&
            atomic_load(&group->queued) > group->taken) ||
           atomic_load(&group->leaving) != leaving;
}

/* Return whether the ranks of this node for which a lane waits have posted. */
static bool posts_arrived(ucx_group_t *group)
{
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++) {
            const ucx_lane_t *lane = &group->active[i].lanes[j];

            if (group->active[i].work == NULL || !lane->alive || !lane->idle)
                continue;
            if (lane->algorithm == ucx_stage_span
                    ? ucx_stage_lane_came(lane)
                    : node_zcopy_arrived(group->node, lane->task.number))
                return true;
        }
    return false;
}

/* Prepare to sleep; return whether there really is nothing to do. */
static bool sleep_ready(ucx_group_t *group, bool leaving)
{
    node_wakeup_asleep(group->node, true);
    return !owner_calls(group, leaving) && !posts_arrived(group) &&
           !node_stage_needs_help(group->node) &&
           (group->frozen || ucp_worker_arm(group->worker) == UCS_OK);
}

typedef struct events {
    struct epoll_event list[8];
    int count;
} events_t;

static void events_await(const ucx_group_t *group, double instant,
                         events_t *events)
{
    double left = instant - clock_now();

    events->count = epoll_wait(group->epollfd, events->list, 8,
                               left <= 0 ? 0 : (int)(left * 1000) + 1);
}

/* Handle the events. Another driver may have handled them already, which does
 * no harm. */
static void events_take(ucx_group_t *group, const events_t *events)
{
    for (int i = 0; i < events->count; i++)
        event_take(group, events->list[i].data.fd);
}

double ucx_drive_until(const ucx_group_t *group, double now)
{
    double instant = watch_due(group->watch);

    if (group->failed_at > 0 && !group->quiet && instant > now + 0.02)
        instant = now + 0.02;
    return instant;
}

/* Spin for a shorter time from now on, as spinning was in vain. The rank that
 * is waited for may need this core. That cannot always be seen from here (other
 * containers, ranks of other hosts on one machine), and sched_yield does not
 * always help (tasks in different groups of the scheduler). Now and then spin
 * for the full time. */
static void patience_lose(ucx_group_t *group)
{
    group->patience /= 2;
    if (++group->sleeps % PROBE == 0)
        group->patience = UCX_SPIN_SECONDS;
}

bool ucx_drive_patient(ucx_group_t *group, ucx_idle_t *idle, double now,
                       bool spin)
{
    if (idle->turns++ == 0)
        idle->since = now;
    if (group->active_count == 0 || group->quiet)
        return false;
    if (now - idle->since < group->patience) {
        if (!spin || idle->turns > LOOKS)
            sched_yield();
        return true;
    }
    if (!idle->slept)
        patience_lose(group);
    idle->slept = true;
    return false;
}

void ucx_drive_moved(ucx_group_t *group, ucx_idle_t *idle)
{
    if (idle->turns > 0 && !idle->slept)
        group->patience = UCX_SPIN_SECONDS;
    *idle = (ucx_idle_t){0};
}

/* global: a signal handler reads it for the thread that it interrupts */
static _Thread_local volatile sig_atomic_t in_transport;

bool comm_in_transport(void)
{
    return in_transport != 0;
}

static unsigned worker_progress(ucx_group_t *group)
{
    unsigned moved;

    in_transport = 1;
    moved = ucp_worker_progress(group->worker);
    in_transport = 0;
    return moved;
}

/* ---- a turn -------------------------------------------------------------- */

bool ucx_drive_turn(ucx_group_t *group, double now)
{
    uint64_t moves = group->moves;
    bool moved;

    check(ucx_group_drives(group), "a turn of rank %d, which does not drive",
          group->base.rank);
    moved = works_admit(group) && works_advance(group);
    for (int i = 0; i < 64 && !group->frozen && moves == group->moves; i++) {
        if (worker_progress(group) == 0)
            break;
        moved = true;
    }
    moved |= works_advance(group);
    moved |= node_stage_help(group->node);
    watch_tick(group->watch, now);
    if (atomic_load(&group->failed))
        fault_step(group, now);
    if (!group->frozen)
        watch_send(group->watch);
    return moved;
}

/* ---- the comm thread's part ---------------------------------------------- */

/* Note that the calling thread has locked [drive]. */
static void drive_taken(ucx_group_t *group)
{
    check(atomic_load(&group->driver) == 0, "two threads of rank %d drive",
          group->base.rank);
    if (CHECK_ON)
        atomic_store(&group->driver, (unsigned long)pthread_self());
}

/* Return whether the group needs its comm thread now. Under drive. */
static bool drive_due(ucx_group_t *group)
{
    double now = clock_now();

    return group->active_count > 0 ||
           atomic_load(&group->queued) > group->taken ||
           atomic_load(&group->leaving) || atomic_load(&group->failed) ||
           now >= watch_due(group->watch) ||
           now - atomic_load(&group->driven) > LINGER_SECONDS;
}

static bool drive_try(ucx_group_t *group)
{
    if (atomic_load(&group->wanted) ||
        pthread_mutex_trylock(&group->drive) != 0)
        return false;
    drive_taken(group);
    if (drive_due(group))
        return true;
    ucx_drive_give(group);
    return false;
}

void ucx_drive_take(ucx_group_t *group)
{
    struct pollfd wake = {.fd = group->wakefd, .events = POLLIN};
    eventfd_t count;
    int pause = 1;

    atomic_store(&group->asleep, true);
    while (!drive_try(group)) {
        if (poll(&wake, 1, pause) > 0)
            (void)!eventfd_read(group->wakefd, &count);
        pause = pause < PARK_MOST ? 2 * pause : PARK_MOST;
    }
    atomic_store(&group->asleep, false);
}

void ucx_drive_give(ucx_group_t *group)
{
    check(ucx_group_drives(group), "rank %d stops to drive, and does not",
          group->base.rank);
    if (CHECK_ON)
        atomic_store(&group->driver, 0);
    pthread_mutex_unlock(&group->drive);
}

void ucx_drive_sleep(ucx_group_t *group, double instant, bool leaving)
{
    events_t events;

    check(ucx_group_drives(group), "rank %d sleeps, and does not drive",
          group->base.rank);
    atomic_store(&group->asleep, true);
    if (sleep_ready(group, leaving)) {
        ucx_drive_give(group);
        events_await(group, instant, &events);
        ucx_drive_take(group);
        events_take(group, &events);
    }
    node_wakeup_asleep(group->node, false);
    atomic_store(&group->asleep, false);
}

/* ---- the owner's part ---------------------------------------------------- */

/* Ask for the lock `drive`. The comm thread releases it after its current turn,
 * unless it hangs. */
static bool drive_ask(ucx_group_t *group)
{
    bool got = pthread_mutex_trylock(&group->drive) == 0;

    atomic_store(&group->wanted, !got);
    for (int i = 1; !got && i <= ASKS; i++) {
        if (i % 20 == 0)
            sched_yield();
        got = pthread_mutex_trylock(&group->drive) == 0;
    }
    atomic_store(&group->wanted, false);
    if (got)
        drive_taken(group);
    return got;
}

static void owner_sleep(ucx_group_t *group, double instant)
{
    events_t events;

    node_stage_present(group->node, false); /* other ranks have to wake it */
    if (sleep_ready(group, false)) {
        events_await(group, instant, &events);
        events_take(group, &events);
    }
    node_wakeup_asleep(group->node, false);
    node_stage_present(group->node, true);
}

/* Return whether to read the clock. A turn of a driver with its own core takes
 * a few tenths of a microsecond, so one reading serves several turns. */
static bool clock_due(const ucx_group_t *group, const ucx_idle_t *idle)
{
    return !group->core || idle->turns > LOOKS ||
           idle->turns % CLOCK_LOOKS == 0;
}

bool ucx_drive_wait(ucx_group_t *group, const ucx_work_t *work)
{
    ucx_idle_t idle = {0};
    double now = clock_now();
    bool held, left;

    if (group->place.nodes == 1 && node_is_open(group->node))
        return false; /* other ranks may wake the comm thread at any time */
    check(work->number < group->started,
          "collective %llu is waited for, of %llu",
          (unsigned long long)work->number, (unsigned long long)group->started);
    if (work->number + 1 != group->started || !drive_ask(group))
        return false;
    node_wakeup_asleep(group->node, false);
    while (atomic_load(&work->state) == COMM_PENDING) {
        bool turned = ucx_drive_turn(group, now);

        if (node_stage_progress(group->node) || turned)
            ucx_drive_moved(group, &idle);
        else if (!ucx_drive_patient(group, &idle, now, group->core))
            owner_sleep(group, ucx_drive_until(group, now));
        if (clock_due(group, &idle))
            now = clock_now();
    }
    left = group->active_count > 0 || watch_has_notes(group->watch) ||
           atomic_load(&group->failed);
    held = !left && work->request.count > LARGE && ucx_net_holds(group);
    /* Bytes that UCX still holds must be sent at once, by the comm thread. */
    atomic_store(&group->driven, held ? LONG_AGO : now);
    ucx_drive_give(group);
    if (left || held)
        ucx_group_wake(group);
    return true;
}
