/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The inside of the ucx backend: the state of a group.
 *
 * There are two threads: the owner, who starts, polls, waits and closes, and
 * the comm thread (ucx_thread.h). One of them drives at a time (ucx_drive.h),
 * and only that one calls UCX. They share the table of works: the owner fills
 * the slot of the next number, queues the work and raises [submitted]. The
 * driver carries out up to UCX_ACTIVE works at a time, in the order of their
 * numbers, and stores the state of each. Works of the node stage (ucx_node.h)
 * within one node are not queued: owners carry them out. Fields below are
 * marked [o] (owner), [c] (driver) or atomic.
 *
 * A work is divided into lanes (ucx_lane.h), which are carried out side by
 * side: one computes while the messages of the other are under way. The driver
 * runs the watch (watch.h), which finds faults.
 */
#ifndef CDDP_COMM_UCX_GROUP_H
#define CDDP_COMM_UCX_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm_ops.h"
#include "comm/node/node.h"
#include "comm/ucx/ucx_lane.h"
#include "comm/ucx/ucx_local.h"
#include "comm/ucx/ucx_net.h"
#include "comm/ucx/ucx_work.h"

#define UCX_ACTIVE 4 /* number of works carried out at a time */

typedef struct ucx_active { /* a work that the driver carries out */
    ucx_work_t *work;       /* NULL: none */
    ucx_lane_t lanes[COMM_LANES];
} ucx_active_t;

typedef struct ucx_group {
    comm_group_t base;
    ucx_net_t net;
    ucx_local_t local;
    comm_place_t planned; /* local.place in the form that comm_plan needs */
    ucx_last_plan_t last; /* [o] */
    node_t *node;         /* node stage of this rank; open or not */
    char **parts;         /* [ranks of the node]: scratch of the lanes */
    watch_t *watch;

    /* For owner and comm thread. */
    pthread_mutex_t drive; /* the thread that has locked it drives */
    atomic_bool wanted;    /* the owner wants to drive */
    _Atomic double driven; /* instant at which the owner last stopped driving */
    ucx_work_t works[COMM_WORKS_MAX];
    uint64_t started; /* [o] number of the next work */
    /* Works with lower numbers are in the table. */
    atomic_uint_fast64_t submitted;
    /* Works in which the driver has a part, and how many were ever queued. */
    ucx_work_t *queue[COMM_WORKS_MAX];
    atomic_uint_fast64_t queued;
    atomic_uint_fast64_t progress; /* counts signs of progress of the owner */
    atomic_int_fast64_t step;
    _Atomic(const char *) phase;
    atomic_int waiting;    /* number of waits in progress */
    _Atomic double polled; /* instant of the last poll without result */
    _Atomic double ticked; /* instant of the comm thread's latest turn */
    atomic_bool asleep;    /* the comm thread sleeps: write to wakefd */
    atomic_bool leaving;   /* the owner has called close */
    atomic_bool failed;
    atomic_bool hung;     /* the comm thread does not tick any more */
    pthread_mutex_t lock; /* for fault, works' state, marks, slept, ended */
    pthread_cond_t changed;
    err_t fault;
    const volatile comm_marks_t *marks; /* see comm_ops_t; NULL: none */
    watch_call_t slept; /* the call because of which the owner last slept */
    bool ended;         /* the comm thread has returned */

    /* [o] */
    pthread_t thread;
    bool running; /* the thread was started */

    /* [c] */
    int wakefd, epollfd;
    uint64_t taken; /* total number of works taken from the queue */
    ucx_active_t active[UCX_ACTIVE];
    int active_count;
    double failed_at; /* instant at which the driver saw the fault; 0: none */
    double spin_seconds; /* for which a driver spins before it sleeps */
    unsigned sleeps;     /* number of sleeps after spinning in vain */
    bool quiet; /* after a fault: UCX no longer touches memory of the owner */
    /* A request could not be ended, so the worker is never driven again. */
    bool frozen;
    bool clean; /* nothing is outstanding: the worker may be destroyed */
} ucx_group_t;

/* Fail the group. The first fault counts. Any thread; does not block. */
void ucx_group_fail(ucx_group_t *group, const err_t *fault);
/* Wake the comm thread if it sleeps. Any thread. */
void ucx_group_wake(ucx_group_t *group);
/* To be called before the owner sleeps because of [work], of the node stage. */
void ucx_group_sleeps(ucx_group_t *group, const ucx_work_t *work);
/* The call of [work], in the form that the watch tells other ranks. */
watch_call_t ucx_group_call(const ucx_work_t *work);
/* Open the watch. Not collective. */
err_code_t ucx_group_watch(ucx_group_t *group, err_t *err);

#endif
