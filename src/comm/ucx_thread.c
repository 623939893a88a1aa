/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The comm thread of a ucx group. It carries out works, drives UCX and looks at
 * deadlines. Between events it sleeps in epoll: the worker's descriptor, an
 * eventfd for new works, the pidfds of node-mates; only while works are under
 * way, and where a core is free for it, it looks a little longer before that.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/ucx_group.h"

#define SPIN_SECONDS 50e-6 /* about the price of going to sleep and waking */
#define YIELDS 2

/* How long requests may take to end after a fault. */
#define QUIET_SECONDS 0.5

/* epoll data: a rank (its pidfd), or */
enum { EVENT_WAKE = -1, EVENT_WORKER = -2, EVENT_BELL = -3 };

/* ---- works --------------------------------------------------------------- */

static void work_begin(ucx_group_t *group, ucx_active_t *active,
                       ucx_work_t *work)
{
    int lanes;
    ucx_algorithm_t algorithm = ucx_choose(group, work, &lanes);

    active->work = work;
    for (int i = 0; i < lanes; i++) {
        ucx_lane_t *lane = &active->lanes[i];

        lane->work = work;
        lane->request = &work->request;
        lane->algorithm = algorithm;
        lane->number = work->number;
        lane->index = i;
        lane->lanes = lanes;
        lane->alive = true;
        lane->broken = lane->idle = false;
        lane->state = 0;
        lane->mask = 0;
        lane->at = (size_t)i * UCX_CHUNK_BYTES;
    }
    group->active_count++;
}

static void work_end(ucx_group_t *group, ucx_active_t *active,
                     comm_state_t state)
{
    ucx_work_t *work = active->work;

    active->work = NULL;
    group->active_count--;
    pthread_mutex_lock(&group->lock);
    atomic_store(&work->state, (int)state);
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    if (atomic_load(&group->node.open)) /* see ucx_node_attend */
        ucx_node_ring(group);
}

/* Take new works from the owner, in order of number. */
static bool works_admit(ucx_group_t *group)
{
    bool admitted = false;

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
        ucx_left_check(group);
    return admitted;
}

static bool lane_advance(ucx_group_t *group, ucx_lane_t *lane)
{
    bool moved = false;

    lane->idle = false;
    while (lane->alive && lane->pending == 0 && !lane->broken && !lane->idle &&
           !atomic_load(&group->failed)) {
        lane->alive = lane->algorithm(group, lane);
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
        for (int j = 0; j < UCX_LANES; j++) {
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
        for (int j = 0; j < UCX_LANES; j++)
            pending += group->active[i].lanes[j].pending;
    return pending;
}

static void fault_begin(ucx_group_t *group, double now)
{
    group->failed_at = now;
    ucx_notes_want(group, NOTE_FAULT);
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < UCX_LANES; j++) {
            group->active[i].lanes[j].alive = false;
            ucx_lane_cancel(&group->active[i].lanes[j]);
        }
}

/* Fail the works once the others have been told and UCX has let go of the
 * works' memory. What it does not let go in time (a large send to a dead rank)
 * is kept from moving by never driving the worker again. */
static void fault_step(ucx_group_t *group, double now)
{
    if (group->failed_at <= 0)
        fault_begin(group, now);
    if (!group->quiet) {
        if ((lanes_pending(group) > 0 || !ucx_notes_idle(group)) &&
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

/* ---- leaving ------------------------------------------------------------- */

static void leave_begin(ucx_group_t *group, double now, double *until)
{
    /* Long enough to find that a peer which does not say good-bye stalls. */
    double patience = 1.25 * group->base.timeout + 1;
    int name = comm_rank_name(&group->base, group->base.rank);
    double since;
    bool pending =
        group->active_count > 0 || ucx_node_oldest(group, &since) != UINT64_MAX;
    err_t fault = ERR_INIT;

    if (pending && !atomic_load(&group->failed)) {
        err_set_peer(&fault, name, group->base.hellos[group->base.rank].host,
                     "rank %d on %s left the group with collectives pending",
                     name, group->base.hellos[group->base.rank].host);
        ucx_group_fail(group, &fault);
    }
    if (atomic_load(&group->failed))
        patience = group->base.timeout < 4 ? group->base.timeout / 4 : 1;
    *until = now + patience;
}

/* Say good-bye and wait until all know; true: may go. */
static bool leave_step(ucx_group_t *group, double now, double *until)
{
    if (*until <= 0)
        leave_begin(group, now, until);
    if (now >= *until)
        return true;
    if (atomic_load(&group->failed) && !group->quiet)
        return false;
    if (group->frozen)
        return true;
    if (!group->farewell) {
        group->farewell = true;
        ucx_notes_want(group, NOTE_BYE);
    }
    return ucx_notes_parted(group);
}

/* ---- sleeping ------------------------------------------------------------ */

static void event_take(ucx_group_t *group, int which)
{
    eventfd_t count;
    char rings[64];

    if (which == EVENT_WAKE) {
        (void)!eventfd_read(group->wakefd, &count);
    } else if (which == EVENT_BELL) {
        (void)!read(group->node.bell, rings, sizeof rings);
    } else if (which >= 0) { /* the process of this rank has ended */
        epoll_ctl(group->epollfd, EPOLL_CTL_DEL, group->peers[which].pidfd,
                  NULL);
        /* Who is no neighbour may have left without a good-bye to us; if it
         * died, its neighbours pass it on. */
        if (group->peers[which].neighbour)
            ucx_peer_lost(group, which);
    }
}

static bool owner_calls(ucx_group_t *group, bool leaving)
{
    return (group->active_count < UCX_ACTIVE &&
            atomic_load(&group->queued) > group->taken) ||
           atomic_load(&group->leaving) != leaving;
}

/* Have the ranks of this node come for whom a lane waits? */
static bool mates_came(ucx_group_t *group)
{
    for (int i = 0; i < UCX_ACTIVE; i++)
        for (int j = 0; j < UCX_LANES; j++) {
            const ucx_lane_t *lane = &group->active[i].lanes[j];

            if (group->active[i].work != NULL && lane->alive && lane->idle &&
                ucx_node_opened(group, lane->number))
                return true;
        }
    return false;
}

/* Sleep until [instant] or an event. */
static void thread_sleep(ucx_group_t *group, double instant, bool leaving)
{
    struct epoll_event events[8];
    double left;
    int count;

    atomic_store(&group->asleep, true);
    ucx_bell_asleep(group, true);
    if (!owner_calls(group, leaving) && !mates_came(group) &&
        !ucx_stage_wanted(group) &&
        (group->frozen || ucp_worker_arm(group->worker) == UCS_OK)) {
        left = instant - clock_now();
        count = epoll_wait(group->epollfd, events, 8,
                           left <= 0 ? 0 : (int)(left * 1000) + 1);
        for (int i = 0; i < count; i++)
            event_take(group, events[i].data.fd);
    }
    ucx_bell_asleep(group, false);
    atomic_store(&group->asleep, false);
}

void ucx_thread_wake(ucx_group_t *group)
{
    if (atomic_load(&group->asleep))
        eventfd_write(group->wakefd, 1);
}

/* ---- the loop ------------------------------------------------------------ */

/* One round; true if anything moved. */
static bool thread_turn(ucx_group_t *group, double now)
{
    bool moved = works_admit(group);

    for (int i = 0; i < 64 && !group->frozen; i++) {
        if (ucp_worker_progress(group->worker) == 0)
            break;
        moved = true;
    }
    moved |= works_advance(group);
    moved |= ucx_stage_help(group);
    if (now >= group->tick_at)
        group->tick_at = ucx_notes_tick(group, now);
    if (atomic_load(&group->failed))
        fault_step(group, now);
    if (!group->frozen)
        ucx_notes_send(group);
    return moved;
}

static void thread_loop(ucx_group_t *group)
{
    double idle_since = 0, until = 0;
    int idle = 0;

    for (;;) {
        double now = clock_now(), instant;
        bool leaving = atomic_load(&group->leaving);

        atomic_store(&group->ticked, now);
        if (thread_turn(group, now)) {
            idle = 0;
            continue;
        }
        if (leaving && leave_step(group, now, &until))
            return;
        if (idle++ == 0)
            idle_since = now;
        if (group->active_count > 0 && !group->quiet) {
            if (group->spin && now - idle_since < SPIN_SECONDS)
                continue;
            if (!group->spin && idle <= YIELDS) {
                sched_yield();
                continue;
            }
        }
        instant = group->tick_at;
        if (until > 0 && until < instant)
            instant = until;
        if (group->failed_at > 0 && !group->quiet && instant > now + 0.02)
            instant = now + 0.02;
        if (group->notes_due)
            instant = 0;
        thread_sleep(group, instant, leaving);
    }
}

static void *thread_main(void *argument)
{
    ucx_group_t *group = argument;

    log_rank_set(group->base.rank);
    thread_prompt();
    ucx_notes_open(group);
    thread_loop(group);
    group->clean = !atomic_load(&group->failed) && !ucx_notes_sending(group);
    if (group->clean)
        ucx_notes_close(group);
    pthread_mutex_lock(&group->lock);
    group->ended = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

static err_code_t event_add(ucx_group_t *group, int fd, int which, err_t *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = which};

    if (epoll_ctl(group->epollfd, EPOLL_CTL_ADD, fd, &event) != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "cannot watch descriptor %d for the comm thread: %s", fd,
                       strerror(errno));
    return ERR_OK;
}

err_code_t ucx_thread_watch_bell(ucx_group_t *group, err_t *err)
{
    return event_add(group, group->node.bell, EVENT_BELL, err);
}

err_code_t ucx_thread_start(ucx_group_t *group, err_t *err)
{
    err_code_t code;
    int efd;

    group->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    group->epollfd = epoll_create1(EPOLL_CLOEXEC);
    if (group->wakefd < 0 || group->epollfd < 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "no descriptors for the comm thread: %s",
                       strerror(errno));
    if (ucp_worker_get_efd(group->worker, &efd) != UCS_OK)
        return err_set(err, ERR_UNAVAILABLE,
                       "UCX has no event descriptor for its transports (see "
                       "UCX_TLS)");
    code = event_add(group, group->wakefd, EVENT_WAKE, err);
    if (code == ERR_OK)
        code = event_add(group, efd, EVENT_WORKER, err);
    for (int i = 0; code == ERR_OK && i < group->base.size; i++)
        if (group->peers[i].mate && group->peers[i].pidfd >= 0)
            code = event_add(group, group->peers[i].pidfd, i, err);
    if (code != ERR_OK)
        return code;
    code = thread_start("cddp-comm", thread_main, group, &group->thread, err);
    group->running = code == ERR_OK;
    return code;
}
