/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_thread.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/ucx/ucx_drive.h"
#include "comm/ucx/ucx_notes.h"

/* ---- leaving ------------------------------------------------------------- */

/* Fail the group if this rank leaves it before its collectives are done. */
static void leave_check(ucx_group_t *group)
{
    double since;
    bool pending = group->active_count > 0 ||
                   node_oldest(group->node, &since) != UINT64_MAX;
    err_t fault = ERR_INIT;

    if (!pending || atomic_load(&group->failed))
        return;
    comm_fault_left(&group->base, &fault);
    ucx_group_fail(group, &fault);
}

/* Maximum seconds for the other ranks to answer the good-bye: long enough to
 * find that a rank which does not answer stalls. */
static double leave_seconds(const ucx_group_t *group)
{
    double timeout = group->base.timeout;

    if (atomic_load(&group->failed))
        return timeout < 4 ? timeout / 4 : 1;
    return 1.25 * timeout + 1;
}

/* Say good-bye. Returns whether the thread may end: all ranks know, or it is
 * later than *until, which the first call sets. */
static bool leave_step(ucx_group_t *group, double now, double *until)
{
    if (*until <= 0) {
        leave_check(group);
        *until = now + leave_seconds(group);
    }
    if (now >= *until)
        return true;
    if (atomic_load(&group->failed) && !group->quiet)
        return false;
    if (group->frozen)
        return true;
    watch_leave(group->watch);
    return watch_has_left(group->watch);
}

/* ---- the loop ------------------------------------------------------------ */

static void thread_loop(ucx_group_t *group)
{
    ucx_idle_t idle = {0};
    double until = 0;

    for (;;) {
        double now = clock_now(), instant;
        bool leaving = atomic_load(&group->leaving);

        atomic_store(&group->ticked, now);
        if (atomic_load(&group->wanted)) {
            ucx_drive_give(group);
            ucx_drive_take(group);
            continue;
        }
        if (ucx_drive_turn(group, now)) {
            ucx_drive_moved(group, &idle);
            continue;
        }
        if (leaving && leave_step(group, now, &until))
            return;
        if (ucx_drive_spins(group, &idle, now, group->local.spin))
            continue;
        instant = ucx_drive_until(group, now);
        if (until > 0 && until < instant)
            instant = until;
        ucx_drive_sleep(group, instant, leaving);
    }
}

static void *thread_main(void *argument)
{
    ucx_group_t *group = argument;

    log_rank_set(group->base.rank);
    thread_prompt();
    ucx_drive_take(group);
    thread_loop(group);
    group->clean =
        !atomic_load(&group->failed) && !watch_is_sending(group->watch);
    if (group->clean)
        ucx_notes_close(&group->net);
    ucx_drive_give(group);
    check(!group->clean || group->active_count == 0,
          "the comm thread ends cleanly with %d works", group->active_count);
    pthread_mutex_lock(&group->lock);
    group->ended = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

/* ---- start --------------------------------------------------------------- */

/* Watch [fd], which is the descriptor [which] (ucx_drive.h). */
static err_code_t event_add(ucx_group_t *group, int fd, int which, err_t *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = which};

    if (epoll_ctl(group->epollfd, EPOLL_CTL_ADD, fd, &event) != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "cannot watch descriptor %d for the comm thread: %s", fd,
                       strerror(errno));
    return ERR_OK;
}

err_code_t ucx_thread_watch(ucx_group_t *group, int fd, err_t *err)
{
    return event_add(group, fd, UCX_EVENT_NODE, err);
}

/* Watch all descriptors that are known before the node stage is open. */
static err_code_t events_add(ucx_group_t *group, int worker_fd, err_t *err)
{
    const ucx_peer_t *peers = group->net.peers;
    err_code_t rc = event_add(group, group->wakefd, UCX_EVENT_WAKE, err);

    if (rc == ERR_OK)
        rc = event_add(group, worker_fd, UCX_EVENT_WORKER, err);
    for (int i = 0; rc == ERR_OK && i < group->base.size; i++)
        if (peers[i].local && peers[i].pidfd >= 0)
            rc = event_add(group, peers[i].pidfd, i, err);
    return rc;
}

err_code_t ucx_thread_start(ucx_group_t *group, err_t *err)
{
    err_code_t rc;
    int fd;

    group->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    group->epollfd = epoll_create1(EPOLL_CLOEXEC);
    if (group->wakefd < 0 || group->epollfd < 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "no descriptors for the comm thread: %s",
                       strerror(errno));
    if (ucp_worker_get_efd(group->net.worker, &fd) != UCS_OK)
        return err_set(err, ERR_UNAVAILABLE,
                       "UCX has no event descriptor for its transports (see "
                       "UCX_TLS)");
    rc = events_add(group, fd, err);
    if (rc != ERR_OK)
        return rc;
    group->spin_seconds = UCX_SPIN_SECONDS;
    ucx_notes_open(&group->net);
    rc = thread_start("cddp-comm", thread_main, group, &group->thread, err);
    group->running = rc == ERR_OK;
    if (rc != ERR_OK)
        ucx_notes_close(&group->net);
    return rc;
}

/* ---- stop ---------------------------------------------------------------- */

bool ucx_thread_stop(ucx_group_t *group)
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

void ucx_thread_close(ucx_group_t *group)
{
    if (group->wakefd >= 0)
        close(group->wakefd);
    if (group->epollfd >= 0)
        close(group->epollfd);
}
