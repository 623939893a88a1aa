/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_drive.h"

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
#include "comm/ucx/ucx_span.h"

/* Number of turns that a driver with its own core makes without sched_yield,
 * because each call takes a large part of the time of a small message. */
#define LOOKS 100
/* Number of these turns between two readings of the clock. */
#define CLOCK_LOOKS 8
/* After this number of sleeps, spin for the full time again. */
#define PROBE 64

/* Maximum number of calls of ucp_worker_progress in a turn, as deadlines have
 * to be checked. */
#define PROGRESS_MOST 64

/* Maximum seconds of a sleep between a fault and the end of the works. */
#define FAULT_SLEEP 0.02

/* The comm thread leaves the group to the owner for this number of seconds
 * after the owner's last wait. */
#define LINGER_SECONDS 1e-3
#define LONG_AGO (-1e9)
/* Maximum milliseconds between two attempts of the comm thread to drive. */
#define PAUSE_MOST 8

/* Number of attempts of the owner to lock `drive` before it leaves the work to
 * the comm thread. */
#define ASKS 400
/* Number of these attempts between two calls of sched_yield. */
#define ASKS_EAGER 20

/* After collectives of more elements, the owner asks UCX whether it has data
 * that is not sent yet. For small ones the question costs more than it saves.
 */
#define LARGE ((size_t)64 << 10)

/* ---- sleeping ------------------------------------------------------------ */

/* Handle an event of the descriptor [which] (ucx_drive.h). */
static void event_handle(ucx_group_t *group, int which)
{
    eventfd_t count;

    if (which == UCX_EVENT_WAKE) {
        (void)!eventfd_read(group->wakefd, &count);
    } else if (which == UCX_EVENT_NODE) {
        node_wakeup_clear(group->node);
    } else if (which >= 0) { /* the process of this rank has ended */
        epoll_ctl(group->epollfd, EPOLL_CTL_DEL, group->net.peers[which].pidfd,
                  NULL);
        /* A rank that is no neighbour may have left without sending us a
         * good-bye. If it died, its neighbours tell us. */
        if (watch_is_neighbour(group->watch, which))
            ucx_net_lost(&group->net, which);
    }
}

/* Return whether the owner has queued a work that can begin, or has called
 * close since [leaving] was read. */
static bool owner_calls(ucx_group_t *group, bool leaving)
{
    return (group->active_count < UCX_ACTIVE &&
            atomic_load(&group->queued) > group->taken) ||
           atomic_load(&group->leaving) != leaving;
}

/* Return whether a lane can continue, as the ranks of this node for which it
 * waits have posted. */
static bool posts_arrived(const ucx_group_t *group)
{
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < COMM_LANES; j++) {
            const ucx_lane_t *lane = &group->active[i].lanes[j];

            if (group->active[i].work == NULL || !lane->alive || !lane->idle)
                continue;
            if (lane->algorithm == ucx_span_staged ? ucx_span_staged_came(lane)
                                                   : ucx_span_arena_came(lane))
                return true;
        }
    return false;
}

/* Prepare to sleep. Returns whether there really is nothing to do. The order
 * matters: first tell others to wake this thread, then look for work. */
static bool sleep_ready(ucx_group_t *group, bool leaving)
{
    node_wakeup_asleep(group->node, true);
    return !owner_calls(group, leaving) && !posts_arrived(group) &&
           !node_stage_needs_help(group->node) &&
           (group->frozen || ucp_worker_arm(group->net.worker) == UCS_OK);
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

/* Handle the events. The other thread may have handled them meanwhile, which
 * does no harm. */
static void events_handle(ucx_group_t *group, const events_t *events)
{
    for (int i = 0; i < events->count; i++)
        event_handle(group, events->list[i].data.fd);
}

double ucx_drive_until(const ucx_group_t *group, double now)
{
    double instant = watch_due(group->watch);

    if (group->failed_at > 0 && !group->quiet && instant > now + FAULT_SLEEP)
        instant = now + FAULT_SLEEP;
    return instant;
}

/* Spin for a shorter time from now on, as spinning was in vain: the rank that
 * this one waits for may need this core. This rank cannot always know that
 * (other containers, ranks of other hosts on one machine), and sched_yield does
 * not always help (tasks in different groups of the scheduler). Now and then
 * spin for the full time again. */
static void spin_shorten(ucx_group_t *group)
{
    group->spin_seconds /= 2;
    if (++group->sleeps % PROBE == 0)
        group->spin_seconds = UCX_SPIN_SECONDS;
}

bool ucx_drive_spins(ucx_group_t *group, ucx_idle_t *idle, double now,
                     bool spin)
{
    if (idle->turns++ == 0)
        idle->since = now;
    if (group->active_count == 0 || group->quiet)
        return false;
    if (now - idle->since < group->spin_seconds) {
        if (!spin || idle->turns > LOOKS)
            sched_yield();
        return true;
    }
    if (!idle->slept)
        spin_shorten(group);
    idle->slept = true;
    return false;
}

void ucx_drive_moved(ucx_group_t *group, ucx_idle_t *idle)
{
    if (idle->turns > 0 && !idle->slept)
        group->spin_seconds = UCX_SPIN_SECONDS;
    *idle = (ucx_idle_t){0};
}

/* ---- a turn -------------------------------------------------------------- */

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
    moved = ucp_worker_progress(group->net.worker);
    in_transport = 0;
    return moved;
}

bool ucx_drive_turn(ucx_group_t *group, double now)
{
    uint64_t moves = group->net.moves;
    bool moved;

    check(ucx_net_is_driven(&group->net),
          "a turn of rank %d, which does not drive", group->base.rank);
    moved = ucx_works_admit(group) && ucx_works_advance(group);
    for (int i = 0; i < PROGRESS_MOST && !group->frozen; i++) {
        if (moves != group->net.moves || worker_progress(group) == 0)
            break;
        moved = true;
    }
    moved |= ucx_works_advance(group);
    moved |= node_stage_help(group->node);
    watch_tick(group->watch, now);
    if (atomic_load(&group->failed))
        ucx_works_fail(group, now);
    if (!group->frozen)
        watch_send(group->watch);
    return moved;
}

/* ---- the comm thread's part ---------------------------------------------- */

/* Note that the calling thread has locked [drive]. */
static void drive_taken(ucx_group_t *group)
{
    check(atomic_load(&group->net.driver) == 0, "two threads of rank %d drive",
          group->base.rank);
    if (CHECK_ON)
        atomic_store(&group->net.driver, (unsigned long)pthread_self());
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

/* Begin to drive if the group needs its comm thread and the owner does not
 * drive. */
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
        pause = pause < PAUSE_MOST ? 2 * pause : PAUSE_MOST;
    }
    atomic_store(&group->asleep, false);
}

void ucx_drive_give(ucx_group_t *group)
{
    check(ucx_net_is_driven(&group->net),
          "rank %d stops driving, and does not drive", group->base.rank);
    if (CHECK_ON)
        atomic_store(&group->net.driver, 0);
    pthread_mutex_unlock(&group->drive);
}

void ucx_drive_sleep(ucx_group_t *group, double instant, bool leaving)
{
    events_t events;

    check(ucx_net_is_driven(&group->net), "rank %d sleeps, and does not drive",
          group->base.rank);
    atomic_store(&group->asleep, true);
    if (sleep_ready(group, leaving)) {
        ucx_drive_give(group);
        events_await(group, instant, &events);
        ucx_drive_take(group);
        events_handle(group, &events);
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
        if (i % ASKS_EAGER == 0)
            sched_yield();
        got = pthread_mutex_trylock(&group->drive) == 0;
    }
    atomic_store(&group->wanted, false);
    if (got)
        drive_taken(group);
    return got;
}

/* Sleep until [instant] or an event, while the owner drives. */
static void owner_sleep(ucx_group_t *group, double instant)
{
    events_t events;

    node_stage_present(group->node, false); /* so that other ranks wake it */
    if (sleep_ready(group, false)) {
        events_await(group, instant, &events);
        events_handle(group, &events);
    }
    node_wakeup_asleep(group->node, false);
    node_stage_present(group->node, true);
}

/* Return whether to read the clock. A turn of a driver with its own core takes
 * a few tenths of a microsecond, so one reading serves several turns. */
static bool clock_due(const ucx_group_t *group, const ucx_idle_t *idle)
{
    return !group->local.core || idle->turns > LOOKS ||
           idle->turns % CLOCK_LOOKS == 0;
}

bool ucx_drive_wait(ucx_group_t *group, const ucx_work_t *work)
{
    ucx_idle_t idle = {0};
    double now = clock_now();
    bool held, left;

    if (group->local.place.nodes == 1 && node_is_open(group->node))
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
        else if (!ucx_drive_spins(group, &idle, now, group->local.core))
            owner_sleep(group, ucx_drive_until(group, now));
        if (clock_due(group, &idle))
            now = clock_now();
    }
    left = group->active_count > 0 || watch_has_notes(group->watch) ||
           atomic_load(&group->failed);
    held = !left && work->request.count > LARGE && ucx_net_holds(&group->net);
    /* The comm thread must send at once what UCX still holds. */
    atomic_store(&group->driven, held ? LONG_AGO : now);
    ucx_drive_give(group);
    if (left || held)
        ucx_group_wake(group);
    return true;
}
