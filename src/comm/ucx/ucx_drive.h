/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Driving a ucx group: carry out works, let UCX make progress, check deadlines.
 * The thread that has locked group->drive does this, the driver. It is the comm
 * thread, except while the owner waits for the last collective that it started:
 * then the owner drives itself, because handing over between threads costs more
 * than a small message. The comm thread takes over when the owner leaves works
 * unfinished, and a moment after the owner's last wait.
 *
 * Between events the driver sleeps in epoll, on the worker's descriptor, an
 * eventfd for new works, the pidfds of ranks of this node, and the wakeup pipe
 * of the node stage. While works are in flight it first spins for a short time.
 */
#ifndef CDDP_COMM_UCX_DRIVE_H
#define CDDP_COMM_UCX_DRIVE_H

#include "comm/ucx/ucx_group.h"

/* What wakes a sleeping driver. epoll reports one of these numbers or, if a
 * rank has ended, the number of that rank. */
enum { UCX_EVENT_WAKE = -1, UCX_EVENT_WORKER = -2, UCX_EVENT_NODE = -3 };

/* About the time that it takes to go to sleep and to wake. */
#define UCX_SPIN_SECONDS 50e-6

typedef struct ucx_idle {
    int turns;    /* number of turns in a row that moved nothing */
    double since; /* instant of the first of them */
    bool slept;   /* the driver slept since then */
} ucx_idle_t;

/* ---- works: ucx_works.c -------------------------------------------------- */

/* Begin queued works if there is room, in the order of their numbers. Returns
 * whether there were any. */
bool ucx_works_admit(ucx_group_t *group);
/* Let all lanes continue as far as they can, and end the works that are done.
 * Returns whether anything moved. */
bool ucx_works_advance(ucx_group_t *group);
/* After a fault, once a turn: cancel the works, and fail them when the other
 * ranks have been told and UCX no longer uses their memory. */
void ucx_works_fail(ucx_group_t *group, double now);

/* ---- turns --------------------------------------------------------------- */

/* Make one turn. Returns whether anything moved. Does not block. */
bool ucx_drive_turn(ucx_group_t *group, double now);
/* After a turn that moved nothing: return whether to make another turn at once.
 * [spin]: there is a core for spinning. Otherwise this call yields the core. */
bool ucx_drive_spins(ucx_group_t *group, ucx_idle_t *idle, double now,
                     bool spin);
/* To be called after a turn that moved something. */
void ucx_drive_moved(ucx_group_t *group, ucx_idle_t *idle);
/* The instant until which the driver may sleep. */
double ucx_drive_until(const ucx_group_t *group, double now);

/* ---- the comm thread's part ---------------------------------------------- */

/* Begin to drive, as soon as that is needed. Blocks until then. */
void ucx_drive_take(ucx_group_t *group);
/* Stop driving. */
void ucx_drive_give(ucx_group_t *group);
/* Sleep until [instant] or an event, unless there is something to do. The owner
 * may drive meanwhile. [leaving]: the value of group->leaving that the comm
 * thread knows. */
void ucx_drive_sleep(ucx_group_t *group, double instant, bool leaving);

/* ---- the owner's part ---------------------------------------------------- */

/* Drive until the driver's part of [work] is over. False: the comm thread has
 * to do it. */
bool ucx_drive_wait(ucx_group_t *group, const ucx_work_t *work);

#endif
